/** The page: signs in, lets the caller pick an agent, and joins call, sound and instruments. */
import { BrowserRecognition, canRecognize } from "./browser_recognition.js";
import { Call } from "./call.js";
import { CallsView } from "./calls_view.js";
import { byId, clockText, element } from "./dom.js";
import { EventLog } from "./event_log.js";
import {
  forgetToken,
  keepToken,
  listAgents,
  listOffers,
  openRoom,
  redeemSignInLink,
  reserveCall,
  storedToken,
} from "./management.js";
import { showInput, showPlayer } from "./meters.js";
import { MicrophoneError, openMicrophone } from "./microphone.js";
import { openPlayer } from "./player.js";
import { RoomCall } from "./room_call.js";
import { openRoomPlayer } from "./room_player.js";
import { TranscriptView } from "./transcript_view.js";
import { VoiceStrip } from "./voice_strip.js";
import { WaterfallView } from "./waterfall_view.js";

const outputHz = 24000;
const clientBufferMs = 400;

const stateNames = {
  idle: "Ready",
  reserving: "Reserving a line",
  connecting: "Connecting",
  busy: "All lines are busy, trying again",
  resuming: "Link lost, reconnecting",
  initializing: "Getting ready",
  listening: "Listening",
  hearing: "Hearing you",
  thinking: "Thinking",
  tool: "Looking it up",
  speaking: "Speaking",
  ending: "Hanging up",
  ended: "Call ended",
};

const desk = byId("desk");
const strip = new VoiceStrip(byId("strip"));
const transcript = new TranscriptView(byId("transcript"), byId("announcer"));
const waterfall = new WaterfallView(byId("turns"), byId("turns-empty"));
const events = new EventLog({
  list: byId("events"),
  filter: byId("events-filter"),
  copy: byId("events-copy"),
  clear: byId("events-clear"),
  count: byId("events-count"),
});
const agents = new Map();
const calls = new CallsView((id) => (id === null ? "Draft agent" : (agents.get(id)?.name ?? "Former agent")), complain);

/** The agent that is picked, and the call that goes on. */
let picked;
/** @type {undefined | {call: Call | RoomCall, inRoom: boolean, player: object, microphone: object | undefined, recognition: BrowserRecognition | undefined, muted: boolean, startedAtMs: number, timer: number}} */
let current;
/** Settles when the sound of the last call is let go of: two at a time can leave the new one silent. */
let released = Promise.resolve();

// Signing in

async function begin() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) {
    // The code is used up in a moment: it has no business in the history or in a bookmark.
    history.replaceState(null, "", location.pathname);
    signInMessage("Signing you in…");
    show("sign-in");
    try {
      await redeemSignInLink(code);
    } catch (error) {
      return signInMessage(
        error.status === 410 || error.status === 400
          ? "This sign-in link has been used already, or it is too old: each link works once, within an hour. Start Frontdesk again and open the new link that it prints."
          : `Signing in did not work: ${error.message}`,
      );
    }
  }
  if (storedToken()) await enterDesk();
  else show("sign-in");
}

async function enterDesk() {
  try {
    const [list, { rooms }] = await Promise.all([listAgents(), listOffers()]);
    agents.clear();
    for (const agent of list) agents.set(agent.id, agent);
    byId("call-over").hidden = !rooms;
    byId("no-rooms").hidden = rooms;
  } catch (error) {
    if (error.status === 401) forgetToken();
    show("sign-in");
    return signInMessage(
      error.status === 401
        ? "That sign-in is not valid any more. Start Frontdesk again and open the new link that it prints."
        : `The agents could not be listed: ${error.message}`,
    );
  }
  showAgents();
  show("desk");
  await calls.refresh();
}

function show(screen) {
  document.body.dataset.screen = screen;
}

function signInMessage(text) {
  byId("sign-in-message").textContent = text;
}

byId("token-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = byId("token").value.trim();
  keepToken({ token, expires_at: new Date(Date.now() + 12 * 3600_000).toISOString() });
  byId("token").value = "";
  await enterDesk();
});

byId("sign-out").addEventListener("click", () => {
  current?.call.drop();
  forgetToken();
  signInMessage("You are signed out. Open a new sign-in link to come back.");
  show("sign-in");
});

// Picking an agent

function showAgents() {
  byId("agents-empty").hidden = agents.size > 0;
  byId("start-voice").disabled = agents.size === 0;
  byId("start-typing").disabled = agents.size === 0;
  byId("agents").replaceChildren(
    ...[...agents.values()].map((agent) =>
      element(
        "label",
        { class: "agent-card" },
        element("input", { type: "radio", name: "agent", value: agent.id, onchange: () => pick(agent) }),
        element("span", { class: "agent-name" }, agent.name),
        element("span", { class: "agent-about" }, agent.description || providersOf(agent)),
      ),
    ),
  );
  const preferred = agents.get(picked?.id) ?? [...agents.values()].find(speaksFirst) ?? [...agents.values()][0];
  if (preferred) pick(preferred);
}

function pick(agent) {
  picked = agent;
  byId("conversation-title").textContent = agent.name;
  byId("agent-about").textContent = agent.description || providersOf(agent);
  transcript.agentName = agent.name;
  const isDeaf = !agent.config?.stt?.provider;
  byId("recognition").hidden = !isDeaf || !canRecognize;
  byId("no-recognition").hidden = !isDeaf || canRecognize;
  for (const input of byId("agents").querySelectorAll("input")) input.checked = input.value === agent.id;
}

function speaksFirst(agent) {
  return Boolean(agent.config?.welcome_message);
}

function providersOf(agent) {
  const { stt, llm, tts } = agent.config ?? {};
  const names = [stt?.provider, llm?.provider ?? "rules", tts?.provider ?? "flite"].filter(Boolean);
  return [...new Set(names)].join(" · ");
}

// A call

byId("start-voice").addEventListener("click", () => startCall(true));
byId("start-typing").addEventListener("click", () => startCall(false));

async function startCall(withMicrophone) {
  if (current || !picked) return;
  clearDesk();
  setState("reserving");
  const inRoom = byId("transport").value === "room";
  const line = { inRoom, muted: !withMicrophone, startedAtMs: performance.now(), microphone: undefined };
  current = line;
  setActive(true);
  try {
    await released;
    line.player = await (inRoom ? openRoomPlayer(({ level }) => strip.agentLevel(level)) : openSocketPlayer(line));
    if (withMicrophone) await turnOnMicrophone(line);
    if (current !== line) return await release(line);
    const call = await (inRoom ? roomCall(line) : socketCall(line));
    // Hung up meanwhile: the reservation runs out by itself.
    if (current !== line) return;
    line.call = call;
    void call.connect();
  } catch (error) {
    complain(error);
    await closeCall(line, "idle");
  }
  showMicrophone();
  (withMicrophone ? byId("mute") : byId("message")).focus();
}

function openSocketPlayer(line) {
  return openPlayer(
    outputHz,
    (name, cleared) => line.call?.send({ type: "mark", name, ...(cleared && { cleared }) }),
    (status) => {
      strip.agentLevel(status.level);
      showPlayer(status);
    },
  );
}

async function socketCall(line) {
  const reservation = await reserveCall(picked.id, {
    audio_format: { encoding: "pcm_s16le", sample_rate: 16000 },
    output_audio_format: { encoding: "pcm_s16le", sample_rate: outputHz },
    client_buffer_ms: clientBufferMs,
    metadata: { client: "talk page" },
  });
  return new Call(reservation.websocket_url, listenerFor(line));
}

async function roomCall(line) {
  const session = await openRoom(picked.id, { metadata: { client: "talk page" } }).catch((error) => {
    throw error.status === 503 && error.code === "unavailable"
      ? new Error("The rooms do not answer at the moment. Call over a WebSocket instead.", { cause: error })
      : error;
  });
  const call = new RoomCall(session, listenerFor(line), (track) => line.player?.attach(track));
  call.speakWith(line.microphone?.track);
  return call;
}

/** @returns {import("./call.js").CallListener} */
function listenerFor(line) {
  return {
    message(message) {
      if (message.type !== "pong") events.add("in", message, message.t ?? 0);
      take(line, message);
    },
    audio: (samples) => line.player?.play(samples),
    sent: (message) => events.add("out", message, performance.now() - line.startedAtMs),
    link(link) {
      if (link === "resuming" && byId("state").dataset.state !== link) {
        transcript.remark("The link was lost. Reconnecting…");
      }
      if (link !== "live") setState(link);
      else if (byId("state").dataset.state === "resuming") {
        transcript.remark("The link is back.");
        setState("listening");
      }
    },
    roundTrip: (rttMs) => {
      byId("round-trip").textContent = ` · ${Math.max(1, Math.round(rttMs))} ms`;
    },
    async ended({ explanation }) {
      transcript.remark(explanation);
      await closeCall(line, "ended");
      await calls.refresh();
    },
  };
}

function take(line, message) {
  switch (message.type) {
    case "call_started":
      callStarted(line, message);
      break;
    case "state":
      setState(message.state);
      break;
    case "user_speech_started":
      setState("hearing");
      break;
    case "user_speech_stopped":
      setState("listening");
      break;
    case "agent_speech_started":
      line.recognition?.rest();
      break;
    case "agent_speech_done":
      if (!line.muted) line.recognition?.listen();
      break;
    case "clear":
      line.player?.clear();
      if (!line.muted) line.recognition?.listen();
      break;
    case "mark":
      line.player?.mark(message.name);
      break;
    case "turn_metrics":
      waterfall.add(message);
      break;
    case "warning":
      complain(new Error(message.message));
      break;
    case "error":
      complain(new Error(message.message));
      break;
    case "draining":
      transcript.remark("The server is about to restart; this call may go on for a little while.");
      break;
  }
  transcript.take(message);
  byId("transcript-empty").hidden = byId("transcript").childElementCount > 0;
}

function callStarted(line, message) {
  if (line.timer) return;
  line.startedAtMs = performance.now() - (message.t ?? 0);
  line.timer = setInterval(() => {
    byId("timer").textContent = clockText(performance.now() - line.startedAtMs);
  }, 500);
  strip.start();
  line.call.send({
    type: "start",
    client: { name: "frontdesk talk page" },
    capabilities: { marks: !line.inRoom, clear: true, echo_cancellation: true, ...transcriptsOf(line) },
  });
  if (line.muted) line.call.send({ type: "mute" });
  else line.recognition?.listen();
}

const transcriptsOf = (line) => (line.recognition ? { transcripts: true } : {});

/** For an agent without a recognizer, where the caller lets the browser do it. */
function openRecognition(line) {
  if (!canRecognize || byId("recognition").hidden || !byId("recognize").checked) return;
  line.recognition = new BrowserRecognition({
    language: picked.config?.tts?.language ?? "en",
    track: line.microphone.track,
    heard: (words) => line.call?.send({ type: "client_transcript", ...words }),
    failed: (explanation) => complain(new Error(explanation)),
  });
  if (line.timer) line.call.send({ type: "start", capabilities: transcriptsOf(line) });
}

async function closeCall(line, state) {
  if (current !== line) return;
  current = undefined;
  clearInterval(line.timer);
  strip.stop();
  setState(state);
  setActive(false);
  toggleKeypad(false);
  released = release(line);
  await released;
  showInput(undefined);
  showPlayer({ bufferedMs: 0, underruns: 0, droppedMs: 0 });
}

/** While a call goes on, another agent cannot be picked. */
function setActive(active) {
  desk.dataset.call = active ? "active" : "idle";
  for (const input of byId("agents").querySelectorAll("input")) input.disabled = active;
}

async function release(line) {
  line.recognition?.close();
  await Promise.allSettled([line.microphone?.close(), line.player?.close()]);
  line.microphone = undefined;
  line.player = undefined;
}

function clearDesk() {
  byId("notice").hidden = true;
  transcript.clear();
  waterfall.clear();
  events.clear();
  byId("timer").textContent = "0:00";
  byId("round-trip").textContent = "";
  byId("transcript-empty").hidden = true;
}

function setState(state) {
  const badge = byId("state");
  badge.textContent = stateNames[state] ?? state;
  badge.dataset.state = state;
  byId("interrupt").disabled = state !== "speaking";
}

/** Says what went wrong, in the conversation's own place. */
function complain(error) {
  const notice = byId("notice");
  notice.textContent = error instanceof Error ? error.message : String(error);
  notice.hidden = false;
  if (error?.status === 401) {
    forgetToken();
    signInMessage("Your sign-in has ended. Start Frontdesk again and open the new link that it prints.");
    show("sign-in");
  }
}

// The microphone

async function turnOnMicrophone(line) {
  try {
    line.microphone = await openMicrophone(
      (frame, level) => {
        if (line.muted) return;
        line.call?.sendAudio(frame);
        strip.callerLevel(level);
        showInput(level);
      },
      () => {
        mute(line, true);
        complain(new Error("The microphone was disconnected. You can go on typing."));
      },
    );
    if (line.inRoom) line.call?.speakWith(line.microphone.track);
    openRecognition(line);
  } catch (error) {
    if (!(error instanceof MicrophoneError)) throw error;
    line.muted = true;
    complain(error);
  }
}

function mute(line, muted) {
  line.muted = muted;
  line.call?.send({ type: muted ? "mute" : "unmute" });
  // In a room the track is the caller's voice: muted, it sends silence.
  if (line.inRoom && line.microphone) line.microphone.track.enabled = !muted;
  if (muted) {
    showInput(undefined);
    line.recognition?.rest();
  } else if (byId("state").dataset.state !== "speaking") line.recognition?.listen();
  showMicrophone();
}

byId("mute").addEventListener("click", async () => {
  const line = current;
  if (!line) return;
  if (line.muted && !line.microphone) {
    await turnOnMicrophone(line);
    if (!line.microphone || line !== current) return;
  }
  mute(line, !line.muted);
});

function showMicrophone() {
  const muted = current?.muted ?? false;
  byId("mute").setAttribute("aria-pressed", String(muted));
  byId("mute-label").textContent = muted ? (current?.microphone ? "Unmute" : "Microphone") : "Mute";
}

// What the caller can do

byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const input = byId("message");
  const text = input.value.trim();
  if (text && current?.call?.send({ type: "user_message", text })) input.value = "";
});

byId("message").addEventListener(
  "input",
  throttled(5000, () => current?.call?.send({ type: "user_activity" })),
);
byId("interrupt").addEventListener("click", () => current?.call?.send({ type: "interrupt" }));

byId("hang-up").addEventListener("click", async () => {
  const line = current;
  if (!line) return;
  setState("ending");
  if (line.call) line.call.hangUp();
  else await closeCall(line, "idle");
  byId("start-voice").focus();
});

byId("keypad").append(
  ...[..."123456789*0#"].map((digit) => element("button", { type: "button", onclick: () => pressDigit(digit) }, digit)),
);
byId("keypad").addEventListener("keydown", (event) => {
  if (/^[0-9*#]$/.test(event.key)) pressDigit(event.key);
  if (event.key === "Escape") toggleKeypad(false, true);
});
byId("keypad-toggle").addEventListener("click", () => toggleKeypad(byId("keypad").hidden, true));

function pressDigit(digit) {
  current?.call?.send({ type: "dtmf", digit });
}

function toggleKeypad(open, moveFocus = false) {
  byId("keypad").hidden = !open;
  byId("keypad-toggle").setAttribute("aria-expanded", String(open));
  if (moveFocus) (open ? byId("keypad").firstElementChild : byId("keypad-toggle")).focus();
}

/** At most once in `intervalMs`. */
function throttled(intervalMs, action) {
  let lastMs = Number.NEGATIVE_INFINITY;
  return () => {
    if (performance.now() - lastMs < intervalMs) return;
    lastMs = performance.now();
    action();
  };
}

// A page that is left hangs up, so that its line is free at once.
addEventListener("pagehide", () => current?.call?.drop());
addEventListener("hashchange", () => begin());

// On a phone the log would push everything else away.
byId("events-panel").open = matchMedia("(min-width: 761px)").matches;

await begin();
