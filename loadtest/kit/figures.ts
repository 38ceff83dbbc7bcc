/** Named figures of one measurement: as a table, as JSON, and as ratios of two measurements. */
import type { Distribution, Summary } from "./statistics.ts";
import { table } from "./text_table.ts";

export interface Figure {
  name: string;
  unit: string;
  value: number | Distribution;
  /** What is aimed at, in words. */
  goal?: string;
}

/** Digits that matter: three. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return "–";
  return value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2);
}

const quantiles = ["p50", "p95", "p99", "max"] as const satisfies readonly (keyof Summary)[];

/** Single figures first, then the distributions. */
export function figuresText(title: string, figures: readonly Figure[]): string {
  const single = figures.flatMap(({ name, unit, value, goal }) =>
    typeof value === "number" ? [[name, unit, digits(value), goal ?? ""]] : [],
  );
  const spread = figures.flatMap(({ name, unit, value, goal }) => {
    if (typeof value === "number") return [];
    const summary = value.summary();
    return [[name, unit, ...quantiles.map((one) => digits(summary[one])), String(value.count), goal ?? ""]];
  });
  return [
    title,
    ...(single.length > 0 ? [table(["", "unit", "", "goal"], single)] : []),
    ...(spread.length > 0 ? [table(["", "unit", ...quantiles, "count", "goal"], spread)] : []),
  ].join("\n");
}

export function figuresJson(figures: readonly Figure[]): Record<string, unknown> {
  return Object.fromEntries(
    figures.map(({ name, unit, value, goal }) => [
      `${name} (${unit})`.replaceAll(/\W+/g, "_").replace(/_$/, ""),
      { ...(typeof value === "number" ? { value } : value.summary()), ...(goal !== undefined && { goal }) },
    ]),
  );
}

/** How many times the first measurement's figure the second one's is. Figures that only one of them has are left out. */
export function figuresRatio(names: [string, string], first: readonly Figure[], second: readonly Figure[]): string {
  const ratio = (mine: number, theirs: number) => (mine > 0 ? digits(theirs / mine) : "–");
  const rows = first.flatMap(({ name, value }) => {
    const other = second.find((figure) => figure.name === name)?.value;
    if (typeof value === "number") return typeof other === "number" ? [[name, ratio(value, other), "", ""]] : [];
    if (other === undefined || typeof other === "number" || value.count === 0 || other.count === 0) return [];
    const [mine, theirs] = [value.summary(), other.summary()];
    return [[name, ...(["p50", "p95", "p99"] as const).map((one) => ratio(mine[one], theirs[one]))]];
  });
  return `${names[1]} to ${names[0]}\n${table(["ratio", "value or p50", "p95", "p99"], rows)}`;
}
