/**
 * Which test files share a process, and which process starts first.
 *
 * A process costs one to three seconds before its first test: Node, the loader, the modules. Those that
 * take long, and those that change what a process has once, have one of their own; the others share one
 * with their neighbours and run there one after the other. The longest start first, so that no long one
 * is left over at the end.
 */

/** Each file below these paths has a process of its own. They start in this order: what takes longest first. */
const ownProcess = [
  "test/house/recipes",
  "test/roles/standalone_start",
  "test/crash/",
  "test/runs/run_stalled_readers",
  "test/adversary/adversary",
  "test/console/",
  "test/rooms/",
  "test/k8s/",
  "gateway/two_processes",
  "test/roles/role",
  "test/voice/golden",
];

/** Files that share a process, at most: what one of them breaks for the next is found among few. */
const sharedFilesMax = 8;

/** The files of each process, in the order of their start. `files` are paths from the root, sorted. */
export function planProcesses(files: readonly string[]): string[][] {
  const rank = (file: string) => ownProcess.findIndex((prefix) => file.startsWith(prefix));
  const alone = files.filter((file) => rank(file) >= 0).sort((a, b) => rank(a) - rank(b));
  const neighbours = new Map<string, string[]>();
  for (const file of files.filter((file) => rank(file) < 0)) {
    const room = roomOf(file);
    neighbours.set(room, [...(neighbours.get(room) ?? []), file]);
  }
  return [...alone.map((file) => [file]), ...[...neighbours.values()].flatMap(inEvenParts)];
}

/** `api`, `media`, …: neighbours import much the same. */
function roomOf(file: string): string {
  return file.slice(0, file.indexOf("/"));
}

function inEvenParts(files: readonly string[]): string[][] {
  const parts = Math.ceil(files.length / sharedFilesMax);
  const size = Math.ceil(files.length / parts);
  return Array.from({ length: parts }, (_, part) => files.slice(part * size, (part + 1) * size));
}
