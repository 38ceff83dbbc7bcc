/** Every vendor of the catalogue, stage by stage, through the suite of that stage. A vendor needs no line here. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, describe, it } from "node:test";
import type { VendorTwin } from "#contracts/vendor_twin.ts";
import { type ModelStage, modelStages } from "#contracts/voice_agent.ts";
import { createGuardedHttp } from "#outbound/guarded_http.ts";
import { catalogue } from "./catalogue.ts";
import { llmContract } from "./llm_contract.ts";
import type { Provider, StageKinds } from "./provider.ts";
import type { Subject } from "./stage_contract.ts";
import { openStage } from "./stages.ts";
import { sttContract } from "./stt_contract.ts";
import { ttsContract } from "./tts_contract.ts";

const contracts: { [S in ModelStage]: (subject: Subject<StageKinds[S]>) => void } = {
  stt: sttContract,
  llm: llmContract,
  tts: ttsContract,
};
const http = createGuardedHttp({ allowPrivateAddresses: true });
const vendors = await Promise.all(catalogue.map(async (provider) => ({ provider, twin: await startTwin(provider) })));

describe("the catalogue", () => {
  after(() => http.close());

  it("has for each vendor a folder of its name with a twin, and each name once", () => {
    const names = catalogue.map(({ name }) => name);
    assert.deepEqual(
      names.filter((name) => !existsSync(new URL(`./${name}/twin.ts`, import.meta.url))),
      [],
    );
    assert.equal(new Set(names).size, names.length);
  });

  for (const { provider, twin } of vendors) {
    describe(provider.name, () => {
      after(async () => {
        await twin.close();
        for (const stage of modelStages) await (await provider[stage]?.load())?.shutDown?.();
      });
      for (const stage of modelStages) {
        if (!provider[stage]) continue;
        for (const model of twin.models?.[stage] ?? [undefined]) {
          describe([stage, model].filter(Boolean).join(" "), () => judge(provider, stage, twin, model));
        }
      }
    });
  }
});

async function startTwin({ name }: Provider): Promise<VendorTwin> {
  const { startTwin: start } = await import(`./${name}/twin.ts`);
  return start();
}

function judge<S extends ModelStage>(provider: Provider, stage: S, twin: VendorTwin, model?: string): void {
  const access = twin.access && { ...twin.access, http };
  contracts[stage]({
    secret: twin.access?.secret,
    can: (behaviour) => twin.play(stage, behaviour) !== undefined,
    open(behaviour) {
      const settings = twin.play(stage, behaviour);
      assert.ok(settings, `the twin of ${provider.name} must be able to play ${behaviour}`);
      const named = { provider: provider.name, language: "en", ...(model !== undefined && { model }) };
      const complete = { ...named, ...settings, options: settings.options ?? {} };
      return openStage(stage, provider, complete, { ...(access && { access }) });
    },
  });
}
