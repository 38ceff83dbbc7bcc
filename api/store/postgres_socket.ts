/**
 * The sockets of the Postgres client. Left to itself the client loses statements for good: what it is given
 * between a socket's error and its close it neither sends nor fails, and the connection, once it is open
 * again, waits for ever for the answer. Told that each close came without an error, it fails all of them.
 * Over TLS it makes the outer socket itself, and that one still tells of its errors.
 */
import { Socket } from "node:net";

/** Where Postgres listens, as the client keeps it. */
interface Addresses {
  host: readonly string[];
  port: readonly number[];
  /** Of a Unix socket, instead of both. */
  path?: string | false;
}

class PostgresSocket extends Socket {
  /** Read by the client, for the name that a certificate has to have. */
  readonly host: string | undefined;

  constructor(host: string | undefined) {
    super();
    this.host = host;
  }

  override emit(event: string | symbol, ...values: unknown[]): boolean {
    return event === "close" ? super.emit(event, false) : super.emit(event, ...values);
  }
}

/**
 * Makes sockets that are connecting: what is written meanwhile waits in them, and a failure is an `error` like
 * any other. Of several hosts each takes the next one.
 */
export function postgresSockets(): (addresses: Addresses) => Socket {
  let made = 0;
  return ({ host: hosts, port: ports, path }) => {
    const at = made % hosts.length;
    made += 1;
    const socket = new PostgresSocket(hosts[at]);
    return path ? socket.connect(path) : socket.connect(ports[at] ?? 5432, hosts[at] ?? "localhost");
  };
}
