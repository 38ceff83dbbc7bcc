/** A day of use: one of UTC. */

/** Whose use is summed up. */
export const subjectKinds = ["organization", "agent", "app"] as const;
export type SubjectKind = (typeof subjectKinds)[number];

/** The day that `now` belongs to, as `2026-11-22`. */
export function dayOf(now: Date): string {
  return now.toISOString().slice(0, 10);
}

/** When the next day begins. */
export function dayEnd(now: Date): Date {
  return new Date(Date.parse(dayOf(now)) + 86_400_000);
}
