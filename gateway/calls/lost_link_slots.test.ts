import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { CallClient, eventually, ManualClock, startTestGateway, type TestGateway } from "#test/kit/gateway_fixture.ts";

for (const transport of ["uws", "ws"] as const) {
  describe(`a full house with lost links on ${transport}`, () => {
    let clock: ManualClock;
    let test: TestGateway;
    beforeEach(async () => {
      clock = new ManualClock();
      test = await startTestGateway({ transport, slots: 2, clock });
    });
    afterEach(() => test.stop());

    /** A call whose link is cut, as its session has noticed. */
    async function lostCall() {
      const { callId, url } = await test.reserve();
      const client = await CallClient.call(url);
      const { resume } = await client.message("call_started");
      client.socket.resetAndDestroy();
      const session = test.media.of(callId);
      await eventually(() => session.pauses === 1, "the link is lost");
      return { callId, session, resumeUrl: `${resume.url}?last_seq=1` };
    }
    const statusOf = (result: CallClient | { status: number; body: string }) =>
      result instanceof CallClient ? 101 : `${result.status} ${result.body}`;
    const full = '503 {"code":"capacity"}';

    it("keeps them for five seconds, then gives the newcomer the slot of the longest-lost", async () => {
      const first = await lostCall();
      clock.advance(2000);
      const second = await lostCall();
      const { url } = await test.reserve();
      clock.advance(3000);
      assert.equal(statusOf(await CallClient.connect(url)), full);
      assert.equal(first.session.end_, undefined);

      clock.advance(1);
      assert.ok((await CallClient.connect(url)) instanceof CallClient);
      const { end } = await test.api.closeOf(first.callId);
      assert.deepEqual([end.reason, end.error_code], ["error", "link_lost"]);
      assert.equal(test.gateway.slotsInUse(), 2);
      assert.equal(statusOf(await CallClient.connect(first.resumeUrl)), '410 {"code":"gone"}');

      // The other is as it was, and its client may come back.
      assert.equal(second.session.end_, undefined);
      assert.ok((await CallClient.connect(second.resumeUrl)) instanceof CallClient);
      clock.advance(10_000);
      assert.equal(statusOf(await CallClient.connect((await test.reserve()).url)), full);
    });

    it("ends as many of them as newcomers are let in, however these race", async () => {
      const lost = [await lostCall(), await lostCall()];
      clock.advance(6000);
      const { url } = await test.reserve();
      const same = await Promise.all(Array.from({ length: 10 }, () => CallClient.connect(url)));
      assert.equal(same.filter((one) => one instanceof CallClient).length, 1);
      assert.equal(lost.filter(({ session }) => session.end_).length, 1);

      const others = await Promise.all(Array.from({ length: 10 }, () => test.reserve()));
      const results = await Promise.all(others.map((other) => CallClient.connect(other.url)));
      assert.equal(results.filter((one) => one instanceof CallClient).length, 1);
      assert.equal(lost.filter(({ session }) => session.end_).length, 2);
      assert.equal(test.gateway.slotsInUse(), 2);

      // Who was refused in the end may come again.
      for (const one of [...same, ...results]) if (one instanceof CallClient) one.ws.close();
      await eventually(() => test.gateway.slotsInUse() === 0, "every slot is free");
      const refused = others.filter((_, index) => !(results[index] instanceof CallClient));
      assert.ok((await CallClient.connect(refused[0]?.url ?? "")) instanceof CallClient);
    });

    it("tells beforehand that there is room, and leaves a lost call alone where a slot is free", async () => {
      const { session } = await lostCall();
      clock.advance(6000);
      const client = await CallClient.call((await test.reserve()).url);
      assert.equal(session.end_, undefined);
      const { url } = await test.reserve();
      const answer = await fetch(url.replace("ws:", "http:"));
      assert.equal(((await answer.json()) as { capacity: boolean }).capacity, true);

      client.ws.close(1000);
      await eventually(() => test.gateway.slotsInUse() === 1, "a close frame frees its slot at once");
    });
  });
}
