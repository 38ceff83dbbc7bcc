/** Hands the caller on: the client is told where to by `transfer`, does it, and answers with `transfer_result`. */
import type { CallConfig } from "#contracts/voice_agent.ts";
import type { ClientMessageOf } from "#contracts/voice_protocol.ts";
import type { Notices } from "../session/notices.ts";
import type { Tool, ToolResult } from "./tool.ts";

const timeoutMs = 30_000;

export class Transfers {
  readonly #notices: Notices;
  readonly #onTransferred: () => void;
  #asked: ((result: ToolResult) => void) | undefined;

  /** `onTransferred`: the caller is somewhere else now, and the call is over. */
  constructor(notices: Notices, onTransferred: () => void) {
    this.#notices = notices;
    this.#onTransferred = onTransferred;
  }

  tool(destinations: CallConfig["destinations"]): Tool {
    const labels = destinations.map(({ label }) => label);
    return {
      spec: {
        name: "transfer_call",
        description: "Transfers the caller to somebody else, after saying `message` where one is given.",
        parameters: {
          type: "object",
          properties: { destination: { type: "string", enum: labels }, message: { type: "string" } },
          required: ["destination"],
        },
      },
      source: "builtin",
      policy: { timeoutMs, longRunning: false, onInterrupt: "finish" },
      problemOf: ({ destination }) =>
        labels.includes(String(destination)) ? undefined : `/destination must be one of ${labels.join(", ")}`,
      run: ({ destination, message }, { signal }) => {
        const found = destinations.find(({ label }) => label === destination);
        if (!found || this.#asked) return Promise.resolve({ text: "A transfer is under way", isError: true });
        this.#notices.send({
          type: "transfer",
          destination: { label: found.label, phone_number: found.phone_number },
          ...(typeof message === "string" && message && { message }),
        });
        return new Promise((resolve, reject) => {
          this.#asked = resolve;
          signal.addEventListener("abort", () => {
            this.#asked = undefined;
            reject(signal.reason);
          });
        });
      },
    };
  }

  /** Without the model's asking. `onFailed`: the client could not do it. */
  handOver({ label, phone_number }: CallConfig["destinations"][number], onFailed: () => void): void {
    this.#asked = ({ isError }) => {
      if (isError) onFailed();
    };
    this.#notices.send({ type: "transfer", destination: { label, phone_number } });
  }

  take({ ok, error }: ClientMessageOf<"transfer_result">): void {
    const asked = this.#asked;
    this.#asked = undefined;
    if (!asked) {
      this.#notices.warn("late_tool_result", "Nobody waits for the result of a transfer", "transfer_result");
      return;
    }
    asked(ok ? { text: "transferred", isError: false } : { text: error ?? "The transfer failed", isError: true });
    if (ok) this.#onTransferred();
  }
}
