/** WebSocket frames as no client should send them, on a call: the call may end, the house goes on. */
import { createHash, randomBytes, randomInt } from "node:crypto";
import type { Socket } from "node:net";
import { type Area, type House, heardOn, stillServes } from "./attacked_house.ts";
import { needed } from "./crew.ts";

interface Frame {
  isLast?: boolean;
  reserved?: number;
  opcode: number;
  payload?: Buffer;
  /** Instead of the payload's own. */
  length?: number | bigint;
  isMasked?: boolean;
}

/** RFC 6455, section 5.2. */
function frame({
  isLast = true,
  reserved = 0,
  opcode,
  payload = Buffer.alloc(0),
  length,
  isMasked = true,
}: Frame): Buffer {
  const size = length ?? payload.byteLength;
  const head = [(isLast ? 0x80 : 0) | (reserved << 4) | opcode];
  const flag = isMasked ? 0x80 : 0;
  if (typeof size === "bigint" || size > 0xffff) {
    const long = Buffer.alloc(8);
    long.writeBigUInt64BE(BigInt(size));
    head.push(flag | 127, ...long);
  } else if (size > 125) head.push(flag | 126, size >> 8, size & 0xff);
  else head.push(flag | size);
  const mask = isMasked ? randomBytes(4) : Buffer.alloc(0);
  const body = isMasked ? Buffer.from(payload.map((byte, i) => byte ^ (mask[i % 4] ?? 0))) : payload;
  return Buffer.concat([Buffer.from(head), mask, body]);
}

const text = (value: string | Buffer): Frame => ({ opcode: 1, payload: Buffer.from(value) });
const attacks: Readonly<Record<string, readonly Frame[]>> = {
  "not masked": [{ ...text("{}"), isMasked: false }],
  "an opcode nobody knows": [{ opcode: 0xb }],
  "reserved bits": [{ ...text("{}"), reserved: 7 }],
  "a control frame in pieces": [{ opcode: 9, isLast: false }],
  "a long ping": [{ opcode: 9, payload: Buffer.alloc(200) }],
  "a continuation of nothing": [{ opcode: 0, payload: Buffer.from("x") }],
  "a message inside of another": [{ ...text("a"), isLast: false }, text("b")],
  "no UTF-8": [text(Buffer.from([0xc3, 0x28, 0xff]))],
  "more than fits anywhere": [{ opcode: 2, length: 2n ** 63n }],
  "more than is taken": [{ opcode: 2, length: 64 * 1024 * 1024 }],
  "a close of one byte": [{ opcode: 8, payload: Buffer.from([3]) }],
  "a close code that is none": [{ opcode: 8, payload: Buffer.from([0, 1]) }],
  "no JSON": [text("{"), text("[]"), text("null"), text('"x"'), text("{}"), text('{"type":"nothing"}')],
  "deep JSON": [text(`${'{"a":'.repeat(5000)}1${"}".repeat(5000)}`)],
  "names of prototypes": [text('{"type":"__proto__"}'), text('{"__proto__":{"type":"end"},"type":"constructor"}')],
  "audio of odd sizes": [0, 1, 3, 161, 65_000].map((size) => ({ opcode: 2, payload: Buffer.alloc(size) })),
  "a thousand pings": Array.from({ length: 1000 }, () => ({ opcode: 9, payload: Buffer.from("x") })),
};
const fuzzedCalls = 8;
const framesOfFuzz = 200;
const patienceMs = 1000;

export const frames: Area = {
  name: "frames",
  async attack(house, report) {
    for (const [name, sent] of Object.entries(attacks)) {
      const problem = await onCall(house, Buffer.concat(sent.map(frame)));
      if (problem) report(`${name}: ${problem}`);
    }
    for (let call = 0; call < fuzzedCalls; call += 1) {
      const noise = Array.from({ length: framesOfFuzz }, () =>
        frame({
          isLast: randomInt(10) > 0,
          reserved: randomInt(20) === 0 ? randomInt(8) : 0,
          opcode: [1, 2, 9, 10, 0, randomInt(16)][randomInt(6)] ?? 1,
          payload: randomBytes(randomInt(300)),
        }),
      );
      const problem = await onCall(house, Buffer.concat([...noise, randomBytes(500)]));
      if (problem) report(`noise: ${problem}`);
    }
  },
};

/** @returns what did not hold while and after a call heard these bytes */
async function onCall(house: House, bytes: Buffer): Promise<string | undefined> {
  const socket = await openCall(house);
  const heard = heardOn(socket, patienceMs);
  socket.write(bytes);
  const { text: told } = await heard;
  if (/\bat .*\.ts:\d+/.test(told)) return "it tells of its inside";
  return stillServes(house);
}

async function openCall(house: House): Promise<Socket> {
  const { pat: bearer, voice_agent_id } = house.file;
  const path = `/v1/agents/voice/agents/${voice_agent_id}/calls/websocket`;
  const { json } = needed(await house.ask("POST", path, { bearer, body: {} }));
  const url = new URL(json.data?.websocket_url ?? json.websocket_url);
  const socket = await house.connect();
  const key = randomBytes(16).toString("base64");
  const head = [
    `GET ${url.pathname}${url.search} HTTP/1.1`,
    `Host: ${house.host}`,
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Key: ${key}`,
    "Sec-WebSocket-Version: 13",
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  const first = await new Promise<string>((resolve, reject) => {
    let head = "";
    socket.on("data", (data) => {
      head += data.toString("latin1");
      if (head.includes("\r\n\r\n")) resolve(head);
    });
    socket.once("close", () => reject(new Error("Cannot begin a call: the house hung up")));
  });
  socket.removeAllListeners();
  const accepted = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  if (!first.startsWith("HTTP/1.1 101") || !first.includes(accepted)) throw new Error(`Cannot begin a call: ${first}`);
  return socket;
}
