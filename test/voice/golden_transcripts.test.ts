/**
 * Golden transcripts: calls that must give exactly these events. `GOLDEN_UPDATE=1` writes them anew
 * from the virtual clock; read the difference before you commit it.
 */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { after, before, describe, it } from "node:test";
import { Ajv2020, type AnySchemaObject, type ValidateFunction } from "ajv/dist/2020.js";
import { brokenRules, differences, normalised, reliable } from "../golden/comparison.ts";
import { type GoldenCall, goldenCalls, goldenFolder, type Line } from "../golden/golden_call.ts";
import { leadOnVirtualClock } from "../golden/harness_call.ts";
import { type GoldenGateway, startGoldenGateway } from "../golden/socket_call.ts";
import { transports } from "../kit/transports.ts";

const isUpdate = process.env.GOLDEN_UPDATE === "1";
const calls = await goldenCalls();
const [isServerMessage, isClientMessage] = await Promise.all([published("server"), published("client")]);

describe("golden transcripts on a virtual clock", () => {
  it("are there", () => assert.ok(calls.length >= 5));

  for (const [file, call] of calls) {
    it(`${file}: ${call.about}`, async () => {
      const lines = await leadOnVirtualClock(call);
      if (isUpdate) await write(file, call, normalised(lines));
      const expected = isUpdate ? normalised(lines) : call.transcript;
      assert.deepEqual(differences(expected, normalised(lines)), []);
      assertValid(lines);
    });
  }

  it("differ when a message is missing, out of order or says something else", {
    skip: isUpdate && "writing them",
  }, () => {
    const [, { transcript }] = calls[0] ?? assert.fail("no golden call");
    const swapped = [...transcript];
    [swapped[3], swapped[4]] = [swapped[4] as Line, swapped[3] as Line];
    const other = JSON.parse(JSON.stringify(transcript).replace("speaking", "listening")) as Line[];
    for (const wrong of [transcript.slice(1), transcript.slice(0, -1), swapped, other]) {
      assert.notEqual(differences(transcript, wrong).length, 0);
    }
  });
});

describe("golden transcripts over a real socket", { concurrency: true, skip: isUpdate && "writing them" }, () => {
  for (const { transport, skip } of transports) {
    describe(`on ${transport}`, { skip, concurrency: true }, () => {
      let gateway: GoldenGateway;
      before(async () => {
        gateway = await startGoldenGateway(transport);
      });
      after(async () => {
        assert.equal(gateway.slotsInUse(), 0);
        await gateway.stop();
      });

      for (const [file, call] of calls) {
        it(`${file}: ${call.about}`, async () => {
          const { lines, close } = await gateway.lead(call);
          assert.deepEqual(reliable(lines), reliable(call.transcript));
          assertValid(lines);
          assert.deepEqual(close, { code: 1000, reason: "normal" });
        });
      }
    });
  }
});

function assertValid(lines: readonly Line[]): void {
  assert.deepEqual(brokenRules(lines), []);
  for (const line of lines) {
    if ("server" in line) assert.ok(isServerMessage(line.server), problem(isServerMessage, line.server));
    if ("caller" in line && "sends" in line.caller) {
      assert.ok(isClientMessage(line.caller.sends), problem(isClientMessage, line.caller.sends));
    }
  }
}

function problem(validate: ValidateFunction, message: unknown): string {
  return `${JSON.stringify(message)}: ${JSON.stringify(validate.errors?.slice(0, 5))}`;
}

/** The published schema of one side, not the one in memory: this is what others check with. */
async function published(side: "server" | "client"): Promise<ValidateFunction> {
  const path = new URL(`../../gateway/protocol/voice.v1.${side}.schema.json`, import.meta.url);
  const schema = JSON.parse(await readFile(path, "utf8")) as AnySchemaObject;
  return new Ajv2020({ strict: false, validateFormats: false }).compile(schema);
}

/** One line of the transcript a line of the file. */
async function write(file: string, call: GoldenCall, transcript: readonly Line[]): Promise<void> {
  const { about, agent, caller } = call;
  const oneALine = (list: readonly unknown[]) =>
    `[\n${list.map((one) => `    ${JSON.stringify(one)}`).join(",\n")}\n  ]`;
  const head = `{\n  "about": ${JSON.stringify(about)},\n  "agent": ${JSON.stringify(agent)},\n`;
  const body = `  "caller": ${oneALine(caller)},\n  "transcript": ${oneALine(transcript)}\n}\n`;
  await writeFile(new URL(file, goldenFolder), head + body);
}
