/** What all callers of one run measured together. Times in milliseconds unless a name says otherwise. */
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
}
