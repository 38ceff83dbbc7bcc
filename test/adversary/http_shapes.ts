/** Requests as no client should send them: each is refused or served, none is misread, and the house goes on. */
import { type Area, heardOn, stillServes } from "./attacked_house.ts";

const crlf = "\r\n";
const second = `GET /healthz?smuggled HTTP/1.1${crlf}Host: x${crlf}${crlf}`;
/** What is read with two lengths, or none that is sure. The connection has to end: what follows is nobody's request. */
const ambiguous: Readonly<Record<string, string>> = {
  "Content-Length and Transfer-Encoding": `POST /v1/x HTTP/1.1${crlf}Host: x${crlf}Content-Length: 4${crlf}Transfer-Encoding: chunked${crlf}${crlf}0${crlf}${crlf}`,
  "two lengths": `POST /v1/x HTTP/1.1${crlf}Host: x${crlf}Content-Length: 1${crlf}Content-Length: 0${crlf}${crlf}`,
  "a list of lengths": `POST /v1/x HTTP/1.1${crlf}Host: x${crlf}Content-Length: 1, 0${crlf}${crlf}`,
  "a signed length": `POST /v1/x HTTP/1.1${crlf}Host: x${crlf}Content-Length: +0${crlf}${crlf}`,
  "a negative length": `POST /v1/x HTTP/1.1${crlf}Host: x${crlf}Content-Length: -1${crlf}${crlf}`,
  "an encoding nobody knows": `POST /v1/x HTTP/1.1${crlf}Host: x${crlf}Transfer-Encoding: xchunked${crlf}${crlf}`,
  "chunked twice": `POST /v1/x HTTP/1.1${crlf}Host: x${crlf}Transfer-Encoding: chunked, chunked${crlf}${crlf}0${crlf}${crlf}`,
  "a line that goes on": `POST /v1/x HTTP/1.1${crlf}Host: x${crlf}X-A: 1${crlf} 2${crlf}Content-Length: 0${crlf}${crlf}`,
  "bare LF": `POST /v1/x HTTP/1.1\nHost: x\nContent-Length: 0\n\n`,
  "a space before the colon": `POST /v1/x HTTP/1.1${crlf}Host: x${crlf}Content-Length : 0${crlf}${crlf}`,
  "a chunk's size that is none": `POST /v1/x HTTP/1.1${crlf}Host: x${crlf}Transfer-Encoding: chunked${crlf}${crlf}zz${crlf}`,
};
/** Odd, and to be survived. */
const odd: Readonly<Record<string, string>> = {
  "no request at all": "\x00\x01\x02\xff\xfe\r\n\r\n",
  TLS: "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
  "HTTP/2": `PRI * HTTP/2.0${crlf}${crlf}SM${crlf}${crlf}`,
  "HTTP/0.9": `GET /${crlf}`,
  "no host": `GET /healthz HTTP/1.1${crlf}${crlf}`,
  "a method nobody knows": `BREW /healthz HTTP/1.1${crlf}Host: x${crlf}${crlf}`,
  "an absolute target": `GET http://127.0.0.1/internal/calls/x HTTP/1.1${crlf}Host: x${crlf}${crlf}`,
  "a proxy's method": `CONNECT 127.0.0.1:22 HTTP/1.1${crlf}Host: x${crlf}${crlf}`,
  "a long path": `GET /${"a".repeat(100_000)} HTTP/1.1${crlf}Host: x${crlf}${crlf}`,
  "many headers": `GET /healthz HTTP/1.1${crlf}Host: x${crlf}${"X-A: 1\r\n".repeat(5000)}${crlf}`,
  "a long header": `GET /healthz HTTP/1.1${crlf}Host: x${crlf}X-A: ${"a".repeat(200_000)}${crlf}${crlf}`,
  "a path with NUL": `GET /v1/\x00 HTTP/1.1${crlf}Host: x${crlf}${crlf}`,
};
const patienceMs = 2000;

export const httpShapes: Area = {
  name: "http_shapes",
  async attack(house, report) {
    const say = async (text: string) => {
      const socket = await house.connect();
      const heard = heardOn(socket, patienceMs);
      socket.write(Buffer.from(text, "latin1"));
      return heard;
    };
    for (const [name, text] of Object.entries(ambiguous)) {
      const { text: told, isClosed } = await say(text + second);
      const statuses = [...told.matchAll(/HTTP\/1\.[01] (\d{3})/g)].map((match) => match[1]);
      if (statuses.length > 1) report(`${name}: what follows was read as a request (${statuses.join(", ")})`);
      // A native parser that waits for the head's end says nothing, and hangs up when nothing comes.
      if (!isClosed && statuses.length > 0) report(`${name}: the connection stays open`);
      const refusals = ["400", "505"];
      if (statuses.some((status) => !refusals.includes(status ?? ""))) report(`${name}: ${statuses.join(", ")}`);
    }
    for (const [name, text] of Object.entries(odd)) {
      const { text: told } = await say(text);
      const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(told)?.[1] ?? 0);
      if (status === 500 || status === 502) report(`${name}: ${status}`);
      if (told.includes("INTERNAL") || /\bat .*\.ts:\d+/.test(told)) report(`${name}: it tells of its inside`);
    }
    await inWords(house, report);
    const problem = await stillServes(house);
    if (problem) report(problem);
  },
};

/** What a well-formed request in the wrong place is answered with, in both services' forms. */
const inWords: Area["attack"] = async (house, report) => {
  const expect = async (what: string, isRight: boolean) => isRight || report(what);
  const wrongMethod = await house.ask("PUT", "/v1/tax/calculate");
  await expect(
    `a wrong method: ${wrongMethod.status}`,
    wrongMethod.status === 405 && wrongMethod.headers.allow === "POST" && wrongMethod.json?.detail !== undefined,
  );
  const unknown = await house.ask("GET", "/v1/nothing");
  await expect("an unknown path", unknown.status === 404 && unknown.json?.detail && unknown.json?.error?.code);
  const noJson = await house.ask("POST", "/v1/projects", {
    bearer: house.file.pat,
    body: '{"name":"x"}',
    headers: { "content-type": "text/plain" },
  });
  await expect(`what is no JSON: ${noJson.status}`, noJson.status === 415);
  for (const path of ["/metrics", "/internal/calls/x", "//internal/x", "/%69nternal/x", "/v1/..%2finternal/x"]) {
    const told = await house.ask("GET", path);
    await expect(`${path}: ${told.status}`, told.status === 404);
  }
};
