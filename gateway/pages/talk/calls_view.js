/** The calls of before: a short list, and one of them in full. */
import { endings } from "./call.js";
import { byId, clockText, durationText, element } from "./dom.js";
import { getCall, listCalls } from "./management.js";
import { turnChart } from "./waterfall_view.js";

const stateNames = { reserved: "not answered yet", in_progress: "in progress", expired: "never connected" };

export class CallsView {
  /** @param {(agentId: string) => string} agentName @param {(error: unknown) => void} onError */
  constructor(agentName, onError) {
    this.agentName = agentName;
    this.onError = onError;
    this.dialog = byId("call-detail");
    byId("calls-refresh").addEventListener("click", () => this.refresh());
  }

  async refresh() {
    try {
      const calls = await listCalls();
      byId("calls").replaceChildren(...calls.map((call) => this.row(call)));
      byId("calls-empty").hidden = calls.length > 0;
    } catch (error) {
      this.onError(error);
    }
  }

  row(call) {
    const began = call.started_at ?? call.created_at;
    return element(
      "li",
      {},
      element(
        "button",
        { type: "button", onclick: () => this.open(call.id) },
        element("span", { class: "call-agent" }, this.agentName(call.agent_id)),
        element("span", { class: "call-outcome" }, outcomeOf(call)),
        element("time", { class: "figure muted", datetime: began }, whenText(began)),
        element("span", { class: "figure muted" }, call.duration_ms == null ? "–" : clockText(call.duration_ms)),
      ),
    );
  }

  async open(callId) {
    try {
      const call = await getCall(callId);
      byId("detail-title").textContent =
        `${this.agentName(call.agent_id)}, ${whenText(call.started_at ?? call.created_at)}`;
      byId("detail-body").replaceChildren(...this.detail(call));
      this.dialog.showModal();
    } catch (error) {
      this.onError(error);
    }
  }

  detail(call) {
    const items = call.transcript ?? [];
    const turns = call.turns ?? [];
    const facts = [
      ["Outcome", endings[call.end_reason] ?? outcomeOf(call)],
      ["Duration", call.duration_ms == null ? "–" : durationText(call.duration_ms)],
      ["You spoke", call.usage ? durationText(call.usage.input_audio_ms) : "–"],
      ["Agent spoke", call.usage ? durationText(call.usage.output_audio_ms) : "–"],
    ];
    return [
      element(
        "dl",
        { class: "facts" },
        ...facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
      ),
      element("h3", {}, "Transcript"),
      items.length
        ? element("ol", { class: "record" }, ...items.map((item) => this.line(item, call)))
        : element("p", { class: "empty" }, "Nothing was said."),
      element("h3", {}, "Turn timing"),
      turns.length
        ? element(
            "ol",
            { class: "turns" },
            ...turns.map((turn, i) => element("li", {}, turnChart(turn, `Turn ${i + 1}`))),
          )
        : element("p", { class: "empty" }, "No turn was answered."),
      element("p", { class: "hint figure" }, call.id),
    ];
  }

  line(item, call) {
    const heard = (item.heard_text ?? item.text).trimEnd();
    const unheard = item.interrupted && item.text.startsWith(heard) ? item.text.slice(heard.length).trim() : "";
    return element(
      "li",
      { class: `line ${item.role}` },
      element(
        "div",
        { class: "byline" },
        element("span", { class: "who" }, item.role === "user" ? "You" : this.agentName(call.agent_id)),
        element("span", { class: "note" }, clockText(item.start_ms) + (item.interrupted ? " · interrupted" : "")),
      ),
      element("p", { class: "words" }, heard, ...(unheard ? [" ", element("del", {}, unheard)] : [])),
    );
  }
}

function outcomeOf(call) {
  return stateNames[call.state] ?? (call.end_reason ?? call.state).replaceAll("_", " ");
}

/** "14:07" today, "19 Nov, 14:07" before. */
function whenText(timestamp) {
  const date = new Date(timestamp);
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? time : `${date.toLocaleDateString([], { day: "numeric", month: "short" })}, ${time}`;
}
