/** TCP ports of this machine: finding a free one, and telling early that one is taken. */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";

/** A TCP port of the loopback interface that nobody listens on at this moment. */
export function freePort(): Promise<number> {
  return tryPort("127.0.0.1", 0);
}

/**
 * Tries each port, before anything is started on it. A port of 0 is always free.
 *
 * @returns a line for each that cannot be had, naming its variable
 */
export async function takenPorts(host: string, ports: Readonly<Record<string, number>>): Promise<string[]> {
  const problems = await Promise.all(
    Object.entries(ports).map(([name, port]) =>
      tryPort(host, port).then(
        () => undefined,
        (error: NodeJS.ErrnoException) => problemOf(error, name, host, port),
      ),
    ),
  );
  return problems.filter((problem) => problem !== undefined);
}

function problemOf(error: NodeJS.ErrnoException, name: string, host: string, port: number): string {
  if (error.code === "EADDRINUSE") return `${name}: port ${port} is already in use; set ${name} to another one`;
  if (error.code === "EACCES") return `${name}: port ${port} is not open to this user; set ${name} to one above 1023`;
  return `${name}: cannot listen on ${host}:${port} (${error.code ?? error.message})`;
}

async function tryPort(host: string, wanted: number): Promise<number> {
  const server = createServer();
  server.listen({ port: wanted, host, exclusive: true });
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
