/** A started house as an attacker meets it: its addresses, requests of any shape, and what was found. */
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { Agent, type Dispatcher, request } from "undici";
import type { BootstrapFile } from "#standalone/bootstrap.ts";

/** What `npm start` leaves in its data folder for its user. */
export type HouseFile = { readonly [Field in keyof BootstrapFile]: string };

export interface Asked {
  body?: unknown;
  headers?: Record<string, string>;
  /** Another Host than the house's own: an app's. */
  host?: string;
  bearer?: string;
}

export interface Told {
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  text: string;
  /** The body as JSON, undefined where it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: an attacker reads bodies as a client in JavaScript does
  json: any;
}

export interface House {
  file: HouseFile;
  host: string;
  port: number;
  ask(method: string, path: string, asked?: Asked): Promise<Told>;
  /** A connection that says whatever it is told to. */
  connect(): Promise<Socket>;
  /** Every body that was answered so far, for those who look for secrets in them. */
  readonly answers: readonly { asked: string; text: string }[];
  close(): Promise<void>;
}

/** What did not hold. */
export interface Finding {
  area: string;
  what: string;
}

/** One kind of attack; `report` takes what did not hold. */
export interface Area {
  name: string;
  attack(house: House, report: (what: string) => void): Promise<void>;
}

/** Answers of this age are looked at for secrets; what is longer is cut. */
const keptAnswers = 20_000;
const keptChars = 4096;
const answerMsMax = 75_000;

/** @param dataDir the house's, which holds `bootstrap.json` */
export function openHouse(dataDir: string): House {
  const file = JSON.parse(readFileSync(`${dataDir}/bootstrap.json`, "utf8")) as HouseFile;
  const { hostname, port, host } = new URL(file.gateway_url);
  const dispatcher = new Agent({ connections: 64, headersTimeout: answerMsMax, bodyTimeout: answerMsMax });
  const answers: { asked: string; text: string }[] = [];

  return {
    file,
    host,
    port: Number(port),
    answers,
    async ask(method, path, { body, headers = {}, host: otherHost, bearer } = {}) {
      const reply = await request(file.gateway_url + path, {
        method: method as Dispatcher.HttpMethod,
        dispatcher,
        headers: {
          ...(otherHost !== undefined && { host: otherHost }),
          ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
          ...(body !== undefined && { "content-type": "application/json" }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      const text = await reply.body.text();
      if (answers.length < keptAnswers) answers.push({ asked: `${method} ${path}`, text: text.slice(0, keptChars) });
      return { status: reply.statusCode, headers: reply.headers, text, json: jsonIn(text) };
    },
    connect: () =>
      new Promise((resolve, reject) => {
        const socket = connect(Number(port), hostname, () => resolve(socket));
        socket.once("error", reject);
      }),
    close: () => dispatcher.destroy(),
  };
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Everything that a connection said until it was closed, or until `ms` have gone by. */
export function heardOn(socket: Socket, ms: number): Promise<{ text: string; isClosed: boolean }> {
  return new Promise((resolve) => {
    let text = "";
    const over = (isClosed: boolean) => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ text, isClosed });
    };
    const timer = setTimeout(() => over(false), ms);
    socket.on("data", (data) => {
      text += data.toString("latin1");
    });
    socket.on("error", () => undefined);
    socket.on("close", () => over(true));
  });
}

/** The house answers, and serves who is let in. */
export async function stillServes(house: House): Promise<string | undefined> {
  const health = await house.ask("GET", "/healthz").catch((error: Error) => error);
  if (health instanceof Error) return `it no longer answers: ${health.message}`;
  const read = await house.ask("GET", "/v1/projects", { bearer: house.file.pat }).catch((error: Error) => error);
  if (read instanceof Error) return `it no longer serves: ${read.message}`;
  return health.status === 200 && read.status === 200 ? undefined : `it answers ${health.status} and ${read.status}`;
}
