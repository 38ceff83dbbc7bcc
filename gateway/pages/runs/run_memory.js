/**
 * A run's events over a reload of this tab, so that the page comes back with its cursor and asks for
 * nothing twice. What is too long to keep is read again from its first event.
 */
const key = "frontdesk.run";
const charsMax = 1_000_000;

/** @param {string} runId @param {object[]} events from the first one, without a gap */
export function keepEvents(runId, events) {
  const text = JSON.stringify({ runId, events });
  try {
    if (text.length <= charsMax) return sessionStorage.setItem(key, text);
  } catch {
    // No room: as if it were too long.
  }
  forgetEvents();
}

/** @returns {object[]} */
export function keptEvents(runId) {
  const kept = JSON.parse(sessionStorage.getItem(key) ?? "null");
  return kept?.runId === runId ? kept.events : [];
}

export function forgetEvents() {
  sessionStorage.removeItem(key);
}
