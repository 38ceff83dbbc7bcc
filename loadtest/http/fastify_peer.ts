/**
 * The other bare peer of the http test, a process of its own: a Fastify route for each endpoint, which
 * parses the request's JSON and writes the answer's anew for each request. The distance to it is what
 * the work itself costs: checks, law, database.
 */
import fastify from "fastify";
import { peerAnswers } from "./peer_answer.ts";

const server = fastify();
for (const { method, path, status, body } of await peerAnswers()) {
  const answer: unknown = JSON.parse(body);
  server.route({
    method,
    url: path.replace(/\?.*$/, ""),
    handler: async (_request, reply) => reply.code(status).send(answer),
  });
}
const url = await server.listen({ port: 0, host: "127.0.0.1" });
process.send?.({ port: Number(new URL(url).port) });
