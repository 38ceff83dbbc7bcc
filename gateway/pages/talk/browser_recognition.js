/**
 * The browser's own recognition of speech, for agents that have none. It listens while the agent is silent:
 * it hears through the loudspeaker as well, and would take the agent's words for the caller's.
 */

const Recognition = globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition;

export const canRecognize = Boolean(Recognition);

/** Of these nothing is to be told: it is begun again. */
const passing = new Set(["no-speech", "aborted"]);
/** A service that ends as soon as it has begun is not asked without a pause. */
const restartMs = 250;

export class BrowserRecognition {
  /**
   * @param {object} options
   * @param {string} options.language a language tag
   * @param {MediaStreamTrack | undefined} options.track without echo; browsers that take none listen by themselves
   * @param {(words: {segment_id: string, text: string, final: boolean, language: string}) => void} options.heard
   * @param {(explanation: string) => void} options.failed once: it recognizes nothing any more
   */
  constructor({ language, track, heard, failed }) {
    this.language = language;
    this.track = track;
    this.heard = heard;
    this.failed = failed;
    this.sessions = 0;
    this.session = undefined;
    this.isOver = false;
  }

  listen() {
    if (this.session || this.isOver) return;
    this.sessions += 1;
    const session = new Recognition();
    this.session = session;
    const number = this.sessions;
    session.lang = this.language;
    session.continuous = true;
    session.interimResults = true;
    session.onresult = ({ resultIndex, results }) => {
      if (session !== this.session) return;
      for (let index = resultIndex; index < results.length; index += 1) this.tell(`${number}.${index}`, results[index]);
    };
    session.onerror = ({ error }) => {
      if (session === this.session && !passing.has(error)) this.giveUp(error);
    };
    session.onend = () => {
      if (session !== this.session) return;
      this.session = undefined;
      setTimeout(() => this.wanted && this.listen(), restartMs);
    };
    this.wanted = true;
    try {
      session.start(this.track);
    } catch {
      this.giveUp("not-allowed");
    }
  }

  tell(segmentId, result) {
    const text = result[0].transcript.trim().slice(0, 4000);
    if (text) this.heard({ segment_id: segmentId, text, final: result.isFinal, language: this.language });
  }

  /** What it is hearing is none of the caller's. */
  rest() {
    this.wanted = false;
    const { session } = this;
    this.session = undefined;
    session?.abort();
  }

  giveUp(error) {
    this.close();
    this.failed(
      error === "network" || error === "service-not-allowed"
        ? "This browser's speech recognition cannot be reached. Please type."
        : "This browser may not recognize speech here. Please type.",
    );
  }

  close() {
    this.isOver = true;
    this.rest();
  }
}
