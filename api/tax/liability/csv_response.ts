/** A table as a CSV file, for requests that ask for one. */
import { type CsvCell, csvText } from "./csv_text.ts";

export function acceptsCsv(request: Request): boolean {
  const accepted = (request.headers.get("accept") ?? "").toLowerCase();
  return accepted.split(",").some((part) => part.split(";")[0]?.trim() === "text/csv");
}

/** @param rows the names of the columns first */
export function csvResponse(
  filename: string,
  rows: readonly (readonly CsvCell[])[],
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(csvText(rows), {
    headers: {
      "content-type": "text/csv; charset=utf-8; header=present",
      "content-disposition": `attachment; filename="${filename}"`,
      ...headers,
    },
  });
}
