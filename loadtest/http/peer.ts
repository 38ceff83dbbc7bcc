/**
 * The bare peer of the http test, a process of its own: `node:http` that answers every path with the
 * JSON that it is given for it, after having read the request's body. Nothing else: what a framework,
 * a check, a database and a proxy cost is the distance to it.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { peerAnswers } from "./peer_answer.ts";

const answers = new Map(
  (await peerAnswers()).map(({ path, status, body }) => [path, { status, body: Buffer.from(body) }]),
);

const server = createServer((request, response) => {
  request.resume();
  request.once("end", () => {
    const { status, body } = answers.get(request.url ?? "") ?? { status: 404, body: Buffer.alloc(0) };
    response.writeHead(status, { "content-type": "application/json", "content-length": body.length }).end(body);
  });
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
process.send?.({ port: (server.address() as AddressInfo).port });
