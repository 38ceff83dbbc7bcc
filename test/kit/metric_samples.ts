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

/** @param address of a role's metrics, without the path */
export async function scrape(address: string): Promise<ReadonlyMap<string, number>> {
  const response = await fetch(`${address}/metrics`);
  if (!response.ok) throw new Error(`Cannot scrape ${address}: it answered ${response.status}`);
  return samplesIn(await response.text());
}
