/** What a bare server of the http test answers to one request: sent to it once, before it listens. */
import { once } from "node:events";

export interface PeerAnswer {
  method: "GET" | "POST";
  path: string;
  status: number;
  /** JSON. */
  body: string;
}

/** In the peer's process: what it is to answer. */
export async function peerAnswers(): Promise<PeerAnswer[]> {
  const [answers] = (await once(process, "message")) as [PeerAnswer[]];
  return answers;
}
