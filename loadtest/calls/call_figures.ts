/** What all callers of one run measured together. Times in milliseconds unless a name says otherwise. */
import type { ServerMessageOf } from "#contracts/voice_protocol.ts";
import { Distribution, Tally } from "../kit/statistics.ts";

export class CallFigures {
  /** From dialling to `call_started`. */
  readonly connectMs = new Distribution();
  /** `turn_metrics.gateway_ms`: the gateway's own account of what it added to a turn. */
  readonly gatewayMs = new Distribution();
  /** The same from outside: from sending the frame that completes the end-of-speech wait to the first agent byte, less the pinned delays. */
  readonly answerMs = new Distribution();
  /** From sending the frame that completes the barge-in threshold to `clear`. */
  readonly bargeInMs = new Distribution();
  /** How far the gap between two output frames is from the frame's length, beyond the lead. */
  readonly jitterMs = new Distribution();
  /** Where the time of an answered turn went, as `turn_metrics` tells it. */
  readonly stages = {
    "end of speech: silence waited": new Distribution(),
    "recognition: final words": new Distribution(),
    "model: first token": new Distribution(),
    "voice: first sound": new Distribution(),
    tools: new Distribution(),
    "end of turn to first audio, without a tool": new Distribution(),
    "end of turn to first audio, with a tool": new Distribution(),
    "end of speech to first audio, without a tool": new Distribution(),
  };
  readonly refused = new Tally();
  /** Calls that ended before they were hung up, by close code and reason. */
  readonly dropped = new Tally();
  readonly warnings = new Tally();
  admitted = 0;
  framesSent = 0;
  framesReceived = 0;
  /** Frames that came too late for a player that starts at once and has `client_buffer_ms` of room. */
  underruns = 0;
  turns = 0;
  /** Audio that arrived between a `clear` and the next utterance: must stay 0. */
  framesAfterClear = 0;
  /** Answers and barge-ins of calls in which a gap was filled with silence: their audio offsets are not the caller's any more. */
  unmeasured = 0;
  /** Text messages whose `seq` was not the next one: must stay 0. */
  sequenceGaps = 0;
  outputAudioMs = 0;

  /** Of a turn whose answer was heard. */
  recordTurn(turn: ServerMessageOf<"turn_metrics">): void {
    this.turns += 1;
    this.gatewayMs.record(turn.gateway_ms);
    if (turn.end_of_turn_to_audio_ms === 0) return;
    const { stages } = this;
    stages["end of speech: silence waited"].record(turn.eos_wait_ms);
    stages["recognition: final words"].record(turn.stt_final_ms);
    stages["model: first token"].record(turn.llm_ttft_ms);
    stages["voice: first sound"].record(turn.tts_ttfb_ms);
    if (turn.tool_ms !== undefined) {
      stages.tools.record(turn.tool_ms);
      stages["end of turn to first audio, with a tool"].record(turn.end_of_turn_to_audio_ms);
      return;
    }
    stages["end of turn to first audio, without a tool"].record(turn.end_of_turn_to_audio_ms);
    stages["end of speech to first audio, without a tool"].record(turn.eos_wait_ms + turn.end_of_turn_to_audio_ms);
  }
}
