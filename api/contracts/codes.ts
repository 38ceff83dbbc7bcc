/**
 * Every reason that a client can be given, as closed sets: an SDK can switch on them. `docs/CODES.md`
 * and the published documents are made from here. HTTP errors are in `errors.ts`; close codes,
 * refusals and the reasons of a call's end in `voice_protocol.ts`.
 */
import { type TUnsafe, Type } from "@sinclair/typebox";

export interface CodeEntry {
  /** What happened, in one sentence for client authors. */
  text: string;
  /** Trying the same again may help. */
  retryable: boolean;
}

const again = (text: string): CodeEntry => ({ text, retryable: true });
const final = (text: string): CodeEntry => ({ text, retryable: false });

/** `error.code` of a run, of a node and of `node.retrying`. */
export const runErrorCodes = {
  abandoned: final("Nobody waits for this node any more: the map or subworkflow around it has ended."),
  address_refused: final("The address leads into a private network, or to a host that may not be called."),
  bad_arguments: final("The model called a tool without a required argument."),
  bad_config: final("The node's configuration cannot be carried out."),
  bad_input: final("The input does not fit the schema of the workflow that was called."),
  bad_items: final("A map was given something that is no array."),
  bad_output: again("The model's reply is not JSON, or does not fit the node's schema."),
  bad_pattern: final("The regular expression is not one of RE2's."),
  bad_time: final("The moment to wait for is not in RFC 3339 form."),
  bad_url: final("The address is no absolute URL."),
  evaluation_too_expensive: final("An expression, a template or a schema took more steps, time or memory than it may."),
  event_too_large: final("An event of the node is larger than 256 KiB."),
  http_status: again("The host answered with a status that is no success."),
  input_expired: final("Nobody answered the question in time."),
  internal_error: again("A fault on our side."),
  mcp_failed: again("The MCP server did not do what was asked."),
  model_failed: again("The language model could not be reached or refused."),
  node_timeout: again("The node took longer than its `timeout_s`."),
  output_too_large: final("What the node gave is larger than 256 KiB."),
  response_too_large: final("The host answered more than is read."),
  run_timeout: again("The nodes of the run worked longer than `run_timeout_s` in all."),
  too_many_items: final("A map was given more items than its `max_items`."),
  too_many_node_runs: final("The run started more nodes than a run may."),
  too_many_tool_steps: final("The model called tools for more steps than `max_tool_steps`."),
  unknown_connection: final("The project has no such connection."),
  unknown_model: final("The node names a model, or a provider of models, that is not there."),
  unknown_node: final("The workflow names a node kind that this version does not have."),
  unknown_tool: final("The model called a tool that it was not given."),
  unknown_version: final("The project has no such workflow version."),
  unreachable: again("The host could not be reached, or did not answer in time."),
  usage_limit: final("The app or its organization has reached its ceiling of the day, whose `at_limit` is `end`."),
  worker_lost: again("The worker that executed the run was lost too often."),
} as const satisfies Record<string, CodeEntry>;
export type RunErrorCode = keyof typeof runErrorCodes;

/** `code` of the message `warning`: the call goes on. */
export const callWarningCodes = {
  client_not_reading: again("The client has stopped to take what is sent: the agent's speech waits for it."),
  events_lost: final("More messages were missed than are held for a resumed connection."),
  ignored_transcript: final("A `client_transcript` came to a call that does not listen to its client's recognition."),
  input_overrun: again("Audio came faster than it is heard, and the oldest was dropped."),
  late_tool_result: final("A result came for a tool call or a transfer that nobody waits for."),
  max_tool_steps: final("The model called tools in `max_tool_steps` steps of a turn; it answers with what it has."),
  mcp_unavailable: again("An MCP server of the agent did not tell its tools; the call goes on without them."),
  no_input_audio: again("No audio is coming in: send silence while the caller is silent."),
  not_available: final("Something was configured or asked for that is not available in this call."),
  provider_fallback: final("A provider failed, and the next one of `fallbacks` answers."),
  provider_recovered: final("The first provider answers again."),
  provider_retry: final("A provider failed before it answered, and is asked once more."),
  queue_full: again("Too many messages wait to be answered, and the newest was refused."),
  tools_cut: final("The agent has more tools than a model is offered, and the last ones were left out."),
  say_refused: again("`say` was asked for in the middle of a turn; use `queue` or `interrupt`."),
  setting_ignored: final("Something is set that has no effect on the agent's providers; `ref` names it."),
  undecodable_audio: again("Much of the caller's audio is not what the call's input format says."),
} as const satisfies Record<string, CodeEntry>;
export type CallWarningCode = keyof typeof callWarningCodes;

/**
 * How a provider fails, in words that a caller of it can act on.
 * - `network`: nothing could be reached, or the connection broke
 * - `unavailable`: the vendor answered that it cannot work now (5xx)
 * - `rate_limited`, `auth`, `quota`, `bad_request`: the vendor refused (429; 401 and 403; 402; other 4xx)
 * - `timeout`: no answer within the provider's own time
 * - `refusal`: the model will not answer this
 * - `protocol`: the answer is not what the vendor's protocol says
 * - `address_refused`: the address guard let no connection through
 * - `failed`: anything else
 */
export const providerErrorKinds = [
  "network",
  "unavailable",
  "rate_limited",
  "timeout",
  "auth",
  "quota",
  "bad_request",
  "refusal",
  "protocol",
  "address_refused",
  "failed",
] as const;
export type ProviderErrorKind = (typeof providerErrorKinds)[number];

/** `code` of the message `error`; the call goes on unless `fatal`. In a room a refusal comes as such a message too. */
export const callErrorCodes = {
  bad_message: final("A message was not JSON, or does not fit its schema."),
  connection_missing: final(
    "The agent names a connection that its project does not have, or has of another vendor: it apologizes and hangs up.",
  ),
  llm_failed: again("The language model failed in this turn."),
  media_open_failed: again("The call could not begin on its media thread."),
  stt_failed: again("Speech recognition failed in this turn."),
  tts_failed: again("Speech synthesis failed in this turn."),
} as const satisfies Record<string, CodeEntry>;
export type CallErrorCode = keyof typeof callErrorCodes;

/** `error_code` of a call whose `end_reason` is `error`; where our side closed the socket, it is the reason of the close. */
export const callFailureCodes = {
  closed_elsewhere: final(
    "The record of the call was closed before the call was over, because its gateway was taken for lost.",
  ),
  connection_missing: final("The agent named a connection that its project did not have, or had of another vendor."),
  gateway_lost: again("The gateway that held the call stopped reporting."),
  internal: again("A fault on our side ended the call."),
  internal_error: again("A fault in the call's session ended the call."),
  link_lost: again("The client's link was lost and did not come back in time."),
  media_full: again("No media thread had room for the call."),
  media_open_failed: again("The call could not begin on its media thread."),
  media_thread_lost: again("The media thread of the call was lost."),
  provider_failed: again("Recognition, the model or the voice failed three times in a row."),
  protocol: final("The client sent what WebSocket does not allow."),
  room_deleted: final("The room was deleted, or the caller was removed from it."),
  room_lost: again("The room's server was lost."),
  seat_process_lost: again("The process of the agent in the room was lost."),
  session_stuck: again("The call's session did not end in time."),
} as const satisfies Record<string, CodeEntry>;
export type CallFailureCode = keyof typeof callFailureCodes;

/** One of the codes of a catalogue: an `enum` in JSON Schema. */
export function codeOf<const C extends Record<string, CodeEntry>>(catalogue: C): TUnsafe<keyof C & string> {
  return Type.Unsafe<keyof C & string>({ type: "string", enum: Object.keys(catalogue) });
}
