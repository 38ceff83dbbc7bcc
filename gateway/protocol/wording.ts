/**
 * What each message, close code and refusal means, in one sentence for client authors. The keys are
 * the contract's own, so that a new message without a sentence does not compile.
 */
import type {
  ClientMessageType,
  CloseReason,
  EndReason,
  RefusalCode,
  ServerMessageType,
} from "#contracts/voice_protocol.ts";

export const serverMessageWording: Readonly<Record<ServerMessageType, string>> = {
  call_started:
    "First message of a call: its audio formats, its limits and how to come back to it. A resumed connection gets it too, with a fresh token, after what it had missed.",
  state: "What the agent is doing now.",
  user_speech_started:
    "Speech of the caller has begun, `audio_ms` into the input audio. While the agent speaks it comes right after `clear`.",
  user_speech_stopped: "The caller's speech ended, `audio_ms` into the input audio; the turn goes to the agent.",
  user_backchannel:
    'What was said over the agent was a listener\'s ("mm-hm"): the agent goes on, and the item is in the record. Comes in place of the final `transcript` of that item; nothing answers it.',
  transcript:
    "Words of one side. A partial one (`final: false`) replaces the item's earlier text; the final one stands, until `truncated` corrects what the agent could really say.",
  agent_speech_started: "The audio that follows belongs to this utterance.",
  agent_speech_done: "The utterance is over: played to its end, or interrupted.",
  clear: "Drop all audio that has not been played. Every binary message after it is new speech.",
  mark: "Sent after the audio it follows; answer with the same name when that audio has been played. The first mark of an utterance, after its first frame, is `start:{utterance_id}`; one follows each second, `at:{utterance_id}:{ms}`; the last one is `end:{utterance_id}`.",
  truncated: "After an interruption: what was really heard of the utterance, and what it would have been.",
  client_tool_call: "Run a tool of yours and answer with `client_tool_result`.",
  client_tool_cancel: "The answer to this tool call is no longer wanted.",
  tool_event: "Progress of a tool that the agent uses.",
  transfer: "Connect the caller to another destination and answer with `transfer_result`.",
  send_dtmf: "Send these keys into the telephone network.",
  turn_metrics: "Where the time of one turn went.",
  usage: "What the call has used so far, each 60 seconds; the final figures are in `call_ended`.",
  flow: "`pause`: stop sending audio, too much of it waits here. `resume`: go on.",
  warning: "Something is not as it should be; the call goes on.",
  error: "Something failed. The call goes on unless `fatal` is true.",
  draining: "This process stops at `deadline`: calls in progress may go on until then.",
  pong: "Answer to `ping`.",
  call_ended: "Last message: why the call ended and what it used. The close frame follows.",
};

export const clientMessageWording: Readonly<Record<ClientMessageType, string>> = {
  start: "Optional, any time: who you are and what you can do. Nothing waits for it.",
  media: "Audio as base64, for stacks that can send JSON only. Equal to one binary message.",
  mark: "The audio before this mark was played, or dropped (`cleared: true`).",
  interrupt: "Stop the agent's speech now (a stop button, or your own barge-in); answered by `clear`.",
  dtmf: "One key. Keys are collected until `#` or a pause of 1.5 s, then they are a turn.",
  user_message:
    "Typed text, a full turn of the caller. `immediate` interrupts the agent's speech, `soon` (the default) waits for the utterance's end, `later` waits until the call is idle.",
  context_update: "Something the agent should know; it triggers no answer.",
  say: "Have the agent say this text as it stands. `queue` waits for the current utterance, `interrupt` cuts it off.",
  client_transcript:
    "Words that the client itself has recognized, for an agent without a recognizer, once `start` said `capabilities: {transcripts: true}`. Each replaces the earlier text of its segment, until it is `final`.",
  client_tool_result: "Result of a tool call; `final: false` reports progress.",
  transfer_result: "How the transfer went.",
  mute: "Treat the input audio as silence.",
  unmute: "Listen again.",
  user_activity: "The caller is there: start counting idle time anew.",
  ping: "Asks for a `pong` with the same `timestamp`, to measure the round trip.",
  hang_up: "End the call; `message` is spoken first.",
};

export const closeWording: Readonly<Record<CloseReason, string>> = {
  normal: "The call is over: hung up, by either side.",
  drained: "The process stopped and its deadline had come.",
  unsupported_data: "Audio was sent in a call that declared itself text-only.",
  bad_encoding: "A text message was not UTF-8.",
  policy: "Too many bad messages.",
  too_big: "A message was larger than 64 KiB.",
  internal: "A fault on our side ended the call.",
  restart: "The process restarts; come back.",
  idle_timeout: "Nobody spoke for the agent's `idle_timeout_s`.",
  superseded: "Another socket resumed this call; this one is spare.",
  max_duration: "The agent's `max_call_duration_s` was reached.",
  slow_consumer: "The client did not read what was sent to it.",
  input_flood: "The client kept sending audio much faster than real time.",
};

export const refusalWording: Readonly<Record<RefusalCode, string>> = {
  bad_request: "The upgrade request cannot be understood.",
  bad_subprotocol: "`Sec-WebSocket-Protocol` was sent and `voice.v1` is not among its values.",
  forbidden_origin: "The agent has an allow-list of origins and `Origin` is not on it.",
  not_found: "No such reservation: an unknown id and a wrong secret look the same.",
  expired: "The reservation was not used in time.",
  consumed: "The reservation has been used.",
  gone: "The agent has been archived, or the resume token is used or out of time.",
  usage_limit: "The agent or its organization has reached its ceiling of the day; it begins anew at midnight UTC.",
  capacity:
    "Every slot is taken or the process is draining. The reservation is untouched: wait for `Retry-After` seconds and connect again.",
  unavailable:
    "The call cannot be opened just now, mostly because the management API cannot be reached; the reservation is then untouched: connect again.",
};

export const endReasonWording: Readonly<Record<EndReason, string>> = {
  client_hangup: "the client hung up or closed its socket",
  agent_hangup: "the agent ended the call",
  transferred: "the call went on elsewhere",
  max_duration: "`max_call_duration_s` was reached",
  idle_timeout: "nobody spoke for `idle_timeout_s`",
  usage_limit: "the agent or its organization reached its ceiling of the day, whose `at_limit` is `end`",
  error:
    "a fault, a client that broke the rules (the close code tells which), or a link that was lost and did not come back",
  drained: "the process stopped",
  superseded: "another connection took the call over",
};
