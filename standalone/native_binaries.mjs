/**
 * The native code of the sockets comes to npm through one person's hands. So what is installed must be,
 * byte for byte, what `native_binaries.sha256` lists. Plain JavaScript on Node alone: `ensure_installed.mjs`
 * asks before anything of it is loaded.
 *
 *     node standalone/native_binaries.mjs                     is what is installed as listed?
 *     node standalone/native_binaries.mjs --compare FOLDER    which of it is the same in another build, upstream's or yours?
 *     node standalone/native_binaries.mjs --write             lists what is installed: after a new version, or your own build
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const listFile = join(here, "native_binaries.sha256");
const installed = join(dirname(here), "node_modules", "uWebSockets.js");

/** What of the native code in `folder` is not as listed, a sentence each; none where there is no native code. */
export function unlistedBinaries(folder = installed, list = readFileSync(listFile, "utf8")) {
  const listed = new Map(list.split("\n").map((line) => [line.slice(66), line.slice(0, 64)]));
  return binariesIn(folder).flatMap((name) => {
    if (!listed.has(name)) return [`${name} is not on the list`];
    return listed.get(name) === sha256(join(folder, name)) ? [] : [`${name} is not the file that is on the list`];
  });
}

function binariesIn(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".node"))
    .map((name) => name.replaceAll("\\", "/"))
    .sort();
}

function sha256(file) {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}

function compare(other) {
  for (const name of binariesIn(installed)) {
    const file = join(other, name);
    const verdict = !existsSync(file)
      ? "not there"
      : sha256(file) === sha256(join(installed, name))
        ? "same"
        : "DIFFERS";
    console.log(`${verdict.padEnd(10)} ${name}`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [flag, folder] = process.argv.slice(2);
  if (flag === "--compare" && folder) compare(folder);
  else if (flag === "--write") {
    // The format of sha256sum, which can check it as well.
    writeFileSync(
      listFile,
      binariesIn(installed)
        .map((name) => `${sha256(join(installed, name))}  ${name}\n`)
        .join(""),
    );
  } else if (flag !== undefined) {
    console.error("Expected nothing, --compare FOLDER or --write.");
    process.exitCode = 2;
  } else {
    const problems = unlistedBinaries();
    for (const problem of problems) console.error(problem);
    if (problems.length > 0) process.exitCode = 1;
    else console.log("The native code of uWebSockets.js is as listed.");
  }
}
