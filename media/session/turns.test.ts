import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  type Decision,
  decide,
  type Effect,
  initialTurnState,
  queueMax,
  shownState,
  type TurnEvent,
  type TurnSettings,
  type TurnState,
} from "./turns.ts";

const settings: TurnSettings = {
  eosSilenceMs: 500,
  heedsEndings: true,
  asksAhead: false,
  allowInterruptions: true,
  idleTimeoutMs: 60_000,
  maxDurationMs: 1_800_000,
  words: {
    apology: "sorry",
    filler: "One moment.",
    farewell: "sorry, goodbye",
    handOver: "one moment",
    stillThere: "still there?",
  },
  canHandOver: false,
};

/** Plays events at times; answers the effects of each and the last state. */
function play(events: readonly (readonly [number, TurnEvent])[], over: Partial<TurnSettings> = {}, from?: TurnState) {
  let state = from ?? initialTurnState({ ...settings, ...over }, 0);
  const effects: Effect[] = [];
  for (const [atMs, event] of events) {
    const decision: Decision = decide(state, event, atMs);
    state = decision.state;
    effects.push(...decision.effects);
  }
  return { state, effects, story: effects.map(inShort) };
}

function inShort(effect: Effect): string {
  switch (effect.do) {
    case "begin":
      return effect.job.is === "reply" ? `reply ${effect.job.turn}` : `say ${effect.job.text}`;
    case "end":
    case "cut":
    case "clear_nothing":
      return `${effect.do} ${effect.reason}`;
    case "refuse":
      return `refuse ${effect.code}`;
    default:
      return "turn" in effect ? `${effect.do} ${effect.turn}` : effect.do;
  }
}

const voice = (startMs: number, endMs: number, silenceMs = 0): TurnEvent => ({
  type: "voice",
  startMs,
  endMs,
  speechMs: endMs - startMs,
  silenceMs,
});
const tick: TurnEvent = { type: "tick" };
const typed = (text: string, urgency: "immediate" | "soon" | "later" = "soon"): TurnEvent => ({
  type: "typed",
  text,
  urgency,
});
const say = (
  text: string,
  behavior: "default" | "queue" | "interrupt" = "default",
  interruptible = true,
): TurnEvent => ({
  type: "say",
  text,
  behavior,
  interruptible,
});
const done: TurnEvent = { type: "agent_done", leaves: false };
const failed: TurnEvent = { type: "agent_done", leaves: false, failed: true };
const speaking: TurnEvent = { type: "agent_speaking" };

/** A caller's turn from 1000 to 2000 ms that ends at 2500 and is understood. */
const oneTurn = [
  [1060, voice(1000, 1060)],
  [2000, voice(1000, 2000)],
  [2500, voice(1000, 2000, 500)],
  [2510, { type: "recognized", turn: 1, understood: true }],
] as const satisfies [number, TurnEvent][];

describe("turns: the scenarios", () => {
  const cases: {
    name: string;
    events: (readonly [number, TurnEvent])[];
    over?: Partial<TurnSettings>;
    story: string[];
  }[] = [
    {
      name: "a turn is taken after the end-of-speech wait and answered once it is understood",
      events: [...oneTurn],
      story: ["user_speech_started 1", "user_speech_stopped 1", "recognize 1", "reply 1"],
    },
    {
      name: "a pause shorter than the wait does not end the turn",
      events: [
        [100, voice(0, 100)],
        [580, voice(0, 100, 480)],
        [600, voice(0, 600)],
      ],
      story: ["user_speech_started 1"],
    },
    {
      name: "a turn in which nothing was understood gets no answer",
      events: [...oneTurn.slice(0, 3), [2510, { type: "recognized", turn: 1, understood: false }]],
      story: ["user_speech_started 1", "user_speech_stopped 1", "recognize 1"],
    },
    {
      name: "barge-in counts from 150 ms of speech",
      events: [...oneTurn, [2600, speaking], [3000, voice(2900, 3040)], [3020, voice(2900, 3050)]],
      story: ["user_speech_started 1", "user_speech_stopped 1", "recognize 1", "reply 1", "barge_in 2"],
    },
    {
      name: "without echo cancellation it takes 500 ms",
      events: [
        [0, { type: "echo_cancellation", present: false }],
        [0, { type: "welcome", text: "hi" }],
        [10, speaking],
        [500, voice(100, 599)],
        [501, voice(100, 600)],
      ],
      story: ["say hi", "barge_in 1"],
    },
    {
      name: "a cough over the agent is forgotten",
      events: [
        [0, { type: "welcome", text: "hi" }],
        [10, speaking],
        [200, voice(100, 200)],
        [700, voice(100, 200, 500)],
        [900, done],
      ],
      story: ["say hi", "forget_speech"],
    },
    {
      name: "no interruption where the agent's configuration allows none: the turn is answered afterwards",
      over: { allowInterruptions: false },
      events: [
        [0, { type: "welcome", text: "hi" }],
        [10, speaking],
        [400, voice(100, 400)],
        [900, voice(100, 400, 500)],
        [910, { type: "recognized", turn: 1, understood: true }],
        [2000, done],
      ],
      story: ["say hi", "user_speech_started 1", "user_speech_stopped 1", "recognize 1", "reply 1"],
    },
    {
      name: "a barge-in without words within 2 s was none",
      events: [
        [0, { type: "welcome", text: "hi" }],
        [10, speaking],
        [300, voice(100, 300)],
        [800, voice(100, 300, 500)],
        [810, { type: "recognized", turn: 1, understood: false }],
        [2290, tick],
        [2300, tick],
        [4000, done],
      ],
      story: ["say hi", "barge_in 1", "user_speech_stopped 1", "recognize 1", "go_on"],
    },
    {
      name: "a barge-in with words drops what was held",
      events: [
        [0, { type: "welcome", text: "hi" }],
        [10, speaking],
        [300, voice(100, 300)],
        [400, { type: "words", listens: false }],
        [9000, tick],
      ],
      story: ["say hi", "barge_in 1", "discard"],
    },
    {
      name: "nothing is gone on with while the caller speaks or is being understood",
      events: [
        [0, { type: "welcome", text: "hi" }],
        [10, speaking],
        [300, voice(100, 300)],
        [2400, tick],
        [2500, voice(100, 2000, 500)],
        [2600, tick],
        [2700, { type: "recognized", turn: 1, understood: true }],
      ],
      story: ["say hi", "barge_in 1", "user_speech_stopped 1", "recognize 1", "discard", "reply 1"],
    },
    {
      name: "after a client's interrupt nothing is gone on with",
      events: [
        [0, { type: "welcome", text: "hi" }],
        [10, speaking],
        [300, { type: "interrupt" }],
        [3000, tick],
      ],
      story: ["say hi", "cut client_interrupt"],
    },
    {
      name: "an interrupt of a held reply drops it",
      events: [
        [0, { type: "welcome", text: "hi" }],
        [10, speaking],
        [300, voice(100, 300)],
        [400, { type: "interrupt" }],
        [9000, tick],
      ],
      story: ["say hi", "barge_in 1", "clear_nothing client_interrupt", "discard"],
    },
    {
      name: "a caller who goes on while being understood gets one answer",
      events: [
        ...oneTurn.slice(0, 3),
        [2700, voice(2540, 2700)],
        [2710, { type: "recognized", turn: 1, understood: true }],
        [3500, voice(2540, 3000, 500)],
        [3510, { type: "recognized", turn: 2, understood: true }],
      ],
      story: [
        "user_speech_started 1",
        "user_speech_stopped 1",
        "recognize 1",
        "user_speech_started 2",
        "user_speech_stopped 2",
        "recognize 2",
        "reply 2",
      ],
    },
    {
      name: "a noise after an understood turn does not swallow its answer",
      events: [
        ...oneTurn.slice(0, 3),
        [2700, voice(2540, 2700)],
        [2710, { type: "recognized", turn: 1, understood: true }],
        [3500, voice(2540, 2700, 500)],
        [3510, { type: "recognized", turn: 2, understood: false }],
      ],
      story: [
        "user_speech_started 1",
        "user_speech_stopped 1",
        "recognize 1",
        "user_speech_started 2",
        "user_speech_stopped 2",
        "recognize 2",
        "reply 1",
      ],
    },
    {
      name: "typed: immediate interrupts, soon waits for the end of the utterance, later for quiet",
      events: [
        [0, { type: "welcome", text: "hi" }],
        [10, speaking],
        [100, typed("later", "later")],
        [110, typed("soon")],
        [120, typed("now", "immediate")],
        [130, done],
        [140, done],
        [1100, tick],
        [1140, tick],
      ],
      story: ["say hi", "cut client_interrupt", "reply 3", "reply 2", "reply 1"],
    },
    {
      name: "say: default is refused in a turn, queue waits, interrupt cuts",
      events: [
        [0, { type: "welcome", text: "hi" }],
        [10, speaking],
        [20, say("a")],
        [30, say("b", "queue")],
        [40, say("c", "interrupt")],
        [50, done],
        [60, done],
        [70, say("d")],
      ],
      story: ["say hi", "refuse say_refused", "cut say", "say c", "say b", "say d"],
    },
    {
      name: "digits become a turn at # or after 1.5 s",
      events: [
        [0, { type: "digit", digit: "4" }],
        [100, { type: "digit", digit: "2" }],
        [200, { type: "digit", digit: "#" }],
        [300, done],
        [400, { type: "digit", digit: "7" }],
        [1899, tick],
        [1900, tick],
      ],
      story: ["reply 1", "reply 2"],
    },
    {
      name: "idle: one prompt at half, the end at the whole; the prompt itself takes no idle time",
      events: [
        [29_990, tick],
        [30_000, tick],
        [30_010, speaking],
        [35_000, done],
        [64_990, tick],
        [65_000, tick],
      ],
      story: [`say ${settings.words.stillThere}`, "end idle_timeout"],
    },
    {
      name: "activity begins idle time anew, prompt included",
      events: [
        [30_000, tick],
        [31_000, done],
        [32_000, { type: "activity" }],
        [61_999, tick],
        [62_000, tick],
      ],
      story: [`say ${settings.words.stillThere}`, `say ${settings.words.stillThere}`],
    },
    {
      name: "no idle time passes while the link is lost",
      events: [
        [10_000, { type: "paused" }],
        [39_000, tick],
        [40_000, { type: "resumed" }],
        [59_990, tick],
        [60_000, tick],
      ],
      story: [`say ${settings.words.stillThere}`],
    },
    { name: "idle_timeout 0 never ends a call", over: { idleTimeoutMs: 0 }, events: [[1_000_000, tick]], story: [] },
    {
      name: "the longest call ends",
      events: [
        [1_799_999, { type: "activity" }],
        [1_800_000, tick],
      ],
      story: ["end max_duration"],
    },
    {
      name: "hang_up ends at once",
      events: [[10, { type: "hang_up", message: undefined }]],
      story: ["end client_hangup"],
    },
    {
      name: "hang_up with a message cuts, says it to the end and leaves",
      events: [
        [0, { type: "welcome", text: "hi" }],
        [10, speaking],
        [20, { type: "hang_up", message: "bye" }],
        [30, speaking],
        [400, voice(100, 400)],
        [500, { type: "interrupt" }],
        [900, done],
      ],
      story: ["say hi", "cut say", "say bye", "end client_hangup"],
    },
    {
      name: "the agent leaves when it has finished",
      events: [
        [0, typed("bye")],
        [10, speaking],
        [900, { type: "agent_done", leaves: true }],
      ],
      story: ["reply 1", "end agent_hangup"],
    },
    {
      name: "a listener's word is no interruption: the agent goes on 200 ms of silence later, as soon as it is understood",
      events: [
        ...oneTurn,
        [2600, speaking],
        [3000, voice(2700, 3000)],
        [3050, { type: "words", listens: true }],
        [3200, voice(2700, 3000, 200)],
        [3210, { type: "recognized", turn: 2, understood: false, listened: true }],
      ],
      story: [
        ...["user_speech_started 1", "user_speech_stopped 1", "recognize 1", "reply 1"],
        ...["barge_in 2", "user_speech_stopped 2", "recognize 2", "go_on"],
      ],
    },
    {
      name: "a listener's word that goes on to say something takes the floor",
      events: [
        ...oneTurn,
        [2600, speaking],
        [3000, voice(2700, 3000)],
        [3050, { type: "words", listens: true }],
        [3100, voice(2700, 3100)],
        [3150, { type: "words", listens: false }],
        [3300, voice(2700, 3100, 200)],
        [3600, voice(2700, 3100, 500)],
        [3610, { type: "recognized", turn: 2, understood: true }],
      ],
      story: [
        ...["user_speech_started 1", "user_speech_stopped 1", "recognize 1", "reply 1"],
        ...["barge_in 2", "discard", "user_speech_stopped 2", "recognize 2", "reply 2"],
      ],
    },
    {
      name: "an answer that failed is apologized for, the third in a row ends the call",
      events: [
        [0, typed("1")],
        [10, failed],
        [20, done],
        [30, typed("2")],
        [40, failed],
        [50, done],
        [60, typed("3")],
        [70, failed],
        [80, speaking],
        [90, typed("4")],
        [900, done],
      ],
      story: ["reply 1", "say sorry", "reply 2", "say sorry", "reply 3", "say sorry, goodbye", "end error"],
    },
    {
      name: "an answer that is given counts the failures anew, and who has gone on is answered without an apology",
      events: [
        [0, typed("1")],
        [10, failed],
        [20, done],
        [30, typed("2")],
        [40, typed("3")],
        [50, failed],
        [60, speaking],
        [70, done],
        [80, typed("4")],
        [90, failed],
      ],
      story: ["reply 1", "say sorry", "reply 2", "reply 3", "reply 4", "say sorry"],
    },
    {
      name: "a recognizer that failed is apologized for, and not while the agent is held",
      events: [
        ...oneTurn.slice(0, 3),
        [2510, { type: "recognized", turn: 1, understood: false, failed: true }],
        [2600, speaking],
        [3000, voice(2700, 3000)],
        [3500, voice(2700, 3000, 500)],
        [3510, { type: "recognized", turn: 2, understood: false, failed: true }],
        [5000, tick],
      ],
      story: [
        ...["user_speech_started 1", "user_speech_stopped 1", "recognize 1", "say sorry"],
        ...["barge_in 2", "user_speech_stopped 2", "recognize 2", "go_on"],
      ],
    },
    {
      name: "the agent stays for who speaks into its farewell where interruptions are off",
      over: { allowInterruptions: false },
      events: [
        [0, typed("bye")],
        [10, speaking],
        [500, voice(300, 500)],
        [900, { type: "agent_done", leaves: true }],
        [1000, voice(300, 500, 500)],
        [1010, { type: "recognized", turn: 2, understood: true }],
      ],
      story: ["reply 1", "user_speech_started 2", "user_speech_stopped 2", "recognize 2", "reply 2"],
    },
    {
      name: "the agent leaves after all when there were no words in what it heard during its farewell",
      over: { allowInterruptions: false },
      events: [
        [0, typed("bye")],
        [10, speaking],
        [500, voice(300, 500)],
        [900, { type: "agent_done", leaves: true }],
        [1000, voice(300, 500, 500)],
        [1010, { type: "recognized", turn: 2, understood: false }],
      ],
      story: ["reply 1", "user_speech_started 2", "user_speech_stopped 2", "recognize 2", "end agent_hangup"],
    },
    {
      name: "the agent stays for a message that waits, and for one that waits for quiet",
      events: [
        [0, typed("bye")],
        [10, speaking],
        [500, typed("one more thing", "later")],
        [900, { type: "agent_done", leaves: true }],
        [2000, tick],
      ],
      story: ["reply 1", "reply 2"],
    },
    {
      name: "the agent stays for digits that are being pressed",
      events: [
        [0, typed("bye")],
        [10, speaking],
        [500, { type: "digit", digit: "1" }],
        [900, { type: "agent_done", leaves: true }],
        [2100, tick],
      ],
      story: ["reply 1", "reply 2"],
    },
  ];
  for (const { name, events, over, story } of cases) {
    it(name, () => assert.deepEqual(play(events, over).story, story));
  }

  it("a digit turn carries its digits, a typed turn its text", () => {
    const { effects } = play([
      [0, { type: "digit", digit: "4" }],
      [0, { type: "digit", digit: "2" }],
      [0, { type: "digit", digit: "#" }],
    ]);
    assert.deepEqual(effects, [
      { do: "begin", job: { is: "reply", turn: 1, input: { kind: "dtmf", text: "42" }, interruptible: true } },
    ]);
  });

  it("asks ahead after half of the wait, three times a turn, and not when much was said", () => {
    const partial: TurnEvent = { type: "words", listens: false };
    const pause = (atMs: number, fromMs = 1000): [number, TurnEvent][] => [
      [atMs, partial],
      [atMs + 200, voice(fromMs, atMs, 200)],
      [atMs + 260, voice(fromMs, atMs, 260)],
      [atMs + 300, voice(fromMs, atMs, 300)],
      [atMs + 400, voice(fromMs, atMs + 400)],
    ];
    const asked = (events: [number, TurnEvent][]) =>
      play([[1060, voice(1000, 1060)], ...events], { asksAhead: true }).story.filter((line) => line.includes("ahead"));
    assert.deepEqual(asked([...pause(1500), ...pause(2500), ...pause(3500), ...pause(4500)]), [
      ...["ask_ahead 1", "forget_ahead", "ask_ahead 1", "forget_ahead", "ask_ahead 1", "forget_ahead"],
    ]);
    assert.deepEqual(asked(pause(11_500)), []);
    const listens: [number, TurnEvent][] = [
      [1500, { type: "words", listens: true }],
      [1650, voice(1000, 1500, 150)],
    ];
    assert.deepEqual(asked(listens), []);
  });

  it("refuses what does not fit into the queue", () => {
    const events: [number, TurnEvent][] = [[0, { type: "welcome", text: "hi" }]];
    for (let i = 0; i <= queueMax; i += 1) events.push([1, typed("x")]);
    assert.equal(play(events).story.filter((line) => line === "refuse queue_full").length, 1);
  });

  it("shows thinking while words are awaited, then the answer's own state", () => {
    assert.equal(shownState(play(oneTurn.slice(0, 2)).state).state, "listening");
    assert.deepEqual(shownState(play(oneTurn.slice(0, 3)).state), { state: "thinking", turn: 1 });
    assert.deepEqual(shownState(play([...oneTurn, [2600, speaking]]).state), { state: "speaking", turn: 1 });
  });
});

describe("turns: over any sequence of events", () => {
  const event: fc.Arbitrary<TurnEvent> = fc.oneof(
    fc.record({
      type: fc.constant("voice" as const),
      startMs: fc.constant(0),
      endMs: fc.integer({ min: 0, max: 3000 }),
      speechMs: fc.integer({ min: 0, max: 3000 }),
      silenceMs: fc.constantFrom(0, 100, 500),
    }),
    fc.constant({ type: "words" as const, listens: false }),
    fc.record({
      type: fc.constant("recognized" as const),
      turn: fc.integer({ min: 1, max: 6 }),
      understood: fc.boolean(),
    }),
    fc.constantFrom<"immediate" | "soon" | "later">("immediate", "soon", "later").map((urgency) => typed("x", urgency)),
    fc.constantFrom("1", "#").map((digit) => ({ type: "digit" as const, digit })),
    fc
      .constantFrom<"default" | "queue" | "interrupt">("default", "queue", "interrupt")
      .map((behavior) => say("x", behavior)),
    fc.constantFrom<TurnEvent>(
      { type: "interrupt" },
      { type: "activity" },
      speaking,
      done,
      { type: "paused" },
      { type: "resumed" },
      tick,
      tick,
      tick,
    ),
  );

  it("one job runs at a time, a held one is gone on with or dropped, no turn is answered twice", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 3000 }), event), { maxLength: 80 }), (steps) => {
        let state = initialTurnState(settings, 0);
        let nowMs = 0;
        let job: "none" | "running" | "held" = "none";
        const answered = new Set<number>();
        for (const [waitMs, next] of steps) {
          nowMs += waitMs;
          const wasActive = state.agent.is !== "silent";
          const decision = decide(state, next, nowMs);
          state = decision.state;
          if (next.type === "agent_done" && wasActive) job = "none";
          for (const effect of decision.effects) {
            if (effect.do === "begin") {
              assert.equal(job, "none");
              job = "running";
              if (effect.job.is === "reply") {
                assert.ok(!answered.has(effect.job.turn));
                answered.add(effect.job.turn);
              }
            } else if (effect.do === "barge_in") {
              assert.equal(job, "running");
              job = "held";
            } else if (effect.do === "go_on") {
              assert.equal(job, "held");
              job = "running";
            } else if (effect.do === "cut") {
              assert.equal(job, "running");
              job = "none";
            } else if (effect.do === "discard") {
              assert.notEqual(job, "none");
              job = "none";
            }
          }
          assert.equal(state.agent.is === "silent", job === "none");
          assert.equal(state.agent.is === "held", job === "held");
          assert.ok(state.queue.length <= queueMax);
        }
      }),
      { numRuns: 500 },
    );
  });
});
