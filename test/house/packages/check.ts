/**
 * The part of `npm run check` about other people's code: licences, and known faults of what is
 * installed with Frontdesk. Without a registry the faults are not known, which is said and no failure.
 */
import { spawnSync } from "node:child_process";
import { root } from "../rooms.ts";
import { licenceProblems, lockedPackages, readAudit } from "./packages.ts";

const auditMsMax = 20_000;

const problems = licenceProblems(lockedPackages());
const { stdout } = spawnSync("npm", ["audit", "--omit=dev", "--json"], {
  cwd: root,
  encoding: "utf8",
  timeout: auditMsMax,
});
const audit = readAudit(stdout ?? "");
if (audit.is === "skipped") process.stderr.write(`npm audit was SKIPPED: ${audit.why}\n`);
if (audit.is === "faults") problems.push(...audit.lines.map((line) => `${line} (npm audit)`));
for (const problem of problems) process.stderr.write(`${problem}\n`);
process.exitCode = problems.length > 0 ? 1 : 0;
