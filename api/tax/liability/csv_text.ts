/** CSV as RFC 4180 has it, for spreadsheets as well: no text in it is taken for a formula. */

export type CsvCell = string | number | null;

export function csvText(rows: readonly (readonly CsvCell[])[]): string {
  return rows.map((row) => `${row.map(cellText).join(",")}\r\n`).join("");
}

/** Amounts may be negative, and are numbers to a spreadsheet. */
const decimal = /^-?\d+(\.\d+)?$/;
/** What spreadsheets begin a formula with, some after white space. */
const formula = /^\s*[=+\-@|%]|^[\t\r\n]/;

function cellText(cell: CsvCell): string {
  if (cell === null) return "";
  const text = String(cell);
  const safe = formula.test(text) && !decimal.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) || safe !== safe.trim() ? `"${safe.replaceAll('"', '""')}"` : safe;
}
