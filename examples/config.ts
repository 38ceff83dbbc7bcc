/** Where the running Frontdesk is, and the credential to use: from the file that its first start wrote. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";

export interface Bootstrap {
  gateway_url: string;
  /** Personal access token: it belongs on a server, never in a browser or an app. */
  pat: string;
  voice_agent_id: string;
  echo_agent_id: string;
}

/** Reads `bootstrap.json` under `DATA_DIR` (default `.data`). Throws, saying what to do, when there is none. */
export async function readBootstrap(): Promise<Bootstrap> {
  const path = join(process.env.DATA_DIR ?? ".data", "bootstrap.json");
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    throw new Error(`Cannot read ${path}: run "npm start" first, or set DATA_DIR to where it keeps its data.`, {
      cause,
    });
  });
  return JSON.parse(text) as Bootstrap;
}
