/**
 * TCP ports of this machine: finding a free one, and holding those that the roles will listen on from
 * the first moment, so that two starts at once never plan with the same.
 */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";

/** A TCP port of the loopback interface that nobody listens on at this moment. */
export async function freePort(): Promise<number> {
  const held = await holdPort("127.0.0.1", 0);
  await held.release();
  return held.port;
}

export interface WantedPort {
  /** 0: any free one. */
  port: number;
  /** Whether somebody asked for this one: then no other will do. */
  isGiven: boolean;
}

export interface HeldPort {
  port: number;
  /** Frees it, for whom it was held to listen on it at once. Does nothing the second time. */
  release(): Promise<void>;
}

/** A given port cannot be had; the message has a line for each, naming its variable. */
export class PortsTakenError extends Error {}

/** Where a default is busy: how far above it to look, before any free one is taken. */
const stepsBeside = Array.from({ length: 9 }, (_, i) => (i + 1) * 10);

/**
 * Holds a port for each name: the wanted one, or, where that is a default and busy, one beside it.
 *
 * @throws PortsTakenError when given ports cannot be had
 */
export async function holdPorts<Name extends string>(
  host: string,
  wanted: Readonly<Record<Name, WantedPort>>,
): Promise<Record<Name, HeldPort>> {
  const held = {} as Record<Name, HeldPort>;
  const problems: string[] = [];
  for (const [name, { port, isGiven }] of Object.entries(wanted) as [Name, WantedPort][]) {
    const candidates = isGiven || port === 0 ? [port] : [port, ...stepsBeside.map((step) => port + step), 0];
    const found = await holdFirst(host, candidates);
    if ("release" in found) held[name] = found;
    else problems.push(problemOf(found, name, host, port));
  }
  if (problems.length === 0) return held;
  await Promise.all((Object.values(held) as HeldPort[]).map((port) => port.release()));
  throw new PortsTakenError(["Cannot start:", ...problems.map((line) => `  ${line}`)].join("\n"));
}

/** The first that can be had, or why the last one cannot. */
async function holdFirst(host: string, candidates: readonly number[]): Promise<HeldPort | NodeJS.ErrnoException> {
  let problem: NodeJS.ErrnoException = new Error("no port was asked for");
  for (const port of candidates) {
    try {
      return await holdPort(host, port);
    } catch (error) {
      problem = error as NodeJS.ErrnoException;
    }
  }
  return problem;
}

function problemOf(error: NodeJS.ErrnoException, name: string, host: string, port: number): string {
  if (error.code === "EADDRINUSE") return `${name}: port ${port} is already in use; set ${name} to another one`;
  if (error.code === "EACCES") return `${name}: port ${port} is not open to this user; set ${name} to one above 1023`;
  return `${name}: cannot listen on ${host}:${port} (${error.code ?? error.message})`;
}

async function holdPort(host: string, wanted: number): Promise<HeldPort> {
  // Whoever knocks before the role listens is turned away.
  const server = createServer((socket) => socket.resetAndDestroy());
  server.listen({ port: wanted, host, exclusive: true });
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async release() {
      if (!server.listening) return;
      server.close();
      await once(server, "close");
    },
  };
}
