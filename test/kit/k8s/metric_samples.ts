/** What a role tells Prometheus, as tests read it. */

/** Samples of the text format, by name with labels as written: `frontdesk_runs{status="running"}`. */
export function samplesIn(text: string): ReadonlyMap<string, number> {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(" ");
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}
