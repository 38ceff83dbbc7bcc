/** The packages that the lock names: under which licence each may be used, and which have a known fault. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../rooms.ts";

export interface LockedPackage {
  name: string;
  version: string;
  /** SPDX, as its maker says. */
  licence: string;
  /** Nobody who installs Frontdesk gets it. */
  isForDevelopment: boolean;
}

interface LockEntry {
  version?: string;
  license?: string;
  dev?: boolean;
  optional?: boolean;
  link?: boolean;
}

/** By name. A binary for another machine, which the lock knows without its licence, has that of the package it belongs to. */
export function lockedPackages(lock = readFileSync(join(root, "package-lock.json"), "utf8")): LockedPackage[] {
  const entries = Object.entries(JSON.parse(lock).packages as Record<string, LockEntry>)
    .filter(([path, { link, optional, license }]) => path !== "" && !link && !(optional && license === undefined))
    .map(([path, { version = "", license = "none", dev = false }]) => ({
      name: path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length),
      version,
      licence: license,
      isForDevelopment: dev,
    }));
  const once = new Map(entries.map((entry) => [`${entry.name} ${entry.version} ${entry.isForDevelopment}`, entry]));
  return [...once.values()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/** Ask for no more than that a notice is kept. */
const free = new Set(
  "0BSD,Apache-2.0,BSD-2-Clause,BSD-3-Clause,BSD-4-Clause,BlueOak-1.0.0,CC0-1.0,ISC,MIT,MIT-0,Public Domain,Python-2.0,Unlicense,Zlib".split(
    ",",
  ),
);
/** Ask for more where they are passed on, which packages for development are not. */
const freeToUse = new Set(["MPL-2.0"]);

/** Packages that nobody here may use without asking a lawyer, one line each. */
export function licenceProblems(packages: readonly LockedPackage[]): string[] {
  return packages
    .filter(({ licence, isForDevelopment }) => {
      const isFree = (one: string) => free.has(one) || (isForDevelopment && freeToUse.has(one));
      const words = licence.replace(/[()]/g, "");
      return !words.split(" OR ").some((choice) => choice.split(" AND ").every(isFree));
    })
    .map(({ name, version, licence }) => `${name} ${version} has the licence ${licence}`);
}

/** `docs/LICENSES.md` */
export function licencesPage(packages: readonly LockedPackage[] = lockedPackages()): string {
  const table = (some: readonly LockedPackage[]) => {
    const licences = [...new Set(some.map(({ licence }) => licence))].sort();
    const rows = licences.map((licence) => {
      const names = some.filter((one) => one.licence === licence).map(({ name, version }) => `\`${name}\` ${version}`);
      return `| ${licence} | ${names.join(", ")} |`;
    });
    return ["| Licence | Packages |", "|---|---|", ...rows].join("\n");
  };
  return `# Licences

Frontdesk is under [Apache-2.0](../LICENSE). This page is made from \`package-lock.json\` by \`npm run house -- --write\`; \`npm run check\` fails on a licence that asks for more than that its notice is kept.

## What is installed with it

${table(packages.filter(({ isForDevelopment }) => !isForDevelopment))}

## For development only

${table(packages.filter(({ isForDevelopment }) => isForDevelopment))}
`;
}

export type Audit = { is: "clean" } | { is: "faults"; lines: string[] } | { is: "skipped"; why: string };

const counted = new Set(["high", "critical"]);

/** What `npm audit --json` printed. A registry that cannot be asked says nothing of the packages. */
export function readAudit(printed: string): Audit {
  let report: { vulnerabilities?: Record<string, { name: string; severity: string; range: string }>; message?: string };
  try {
    report = JSON.parse(printed);
  } catch {
    return { is: "skipped", why: "npm audit printed nothing that can be read" };
  }
  if (!report.vulnerabilities) return { is: "skipped", why: report.message ?? "the registry did not answer" };
  const lines = Object.values(report.vulnerabilities)
    .filter(({ severity }) => counted.has(severity))
    .map(({ name, severity, range }) => `${name} ${range}: ${severity}`);
  return lines.length > 0 ? { is: "faults", lines } : { is: "clean" };
}
