/** Names and icons (24 by 24, as strokes) of kinds of nodes, as the server lists them. */
import { listNodeKinds } from "./runs_api.js";

const kinds = new Map();

/** Before anything is drawn. */
export async function loadNodeKinds() {
  for (const { kind, name, icon } of await listNodeKinds()) kinds.set(kind, { name, icon });
}

/** @param {string} kind one that is not known is a plain box with its own word */
export function wordsOf(kind) {
  return kinds.get(kind) ?? { name: kind, icon: "M5 5h14v14H5z" };
}
