/** The app's runs, the newest first, page by page. */
import { byId, clockText, element } from "../talk/dom.js";
import { statusNames } from "./run_words.js";
import { listRuns } from "./runs_api.js";

export class EarlierRuns {
  #appId;
  #pages = 1;

  /** @param {(run: object) => void} onOpen @param {(error: unknown) => void} onError */
  constructor(onOpen, onError) {
    this.onOpen = onOpen;
    this.onError = onError;
    byId("earlier-refresh").addEventListener("click", () => this.refresh());
    byId("earlier-more").addEventListener("click", () => {
      this.#pages += 1;
      void this.refresh();
    });
  }

  async show(appId) {
    this.#appId = appId;
    this.#pages = 1;
    await this.refresh();
  }

  async refresh() {
    const appId = this.#appId;
    if (!appId) return;
    try {
      const runs = [];
      let hasMore = false;
      for (let page = 1; page <= this.#pages; page += 1) {
        const { data, pagination } = await listRuns(appId, page);
        runs.push(...data);
        hasMore = page * pagination.page_size < pagination.total_count;
      }
      if (appId !== this.#appId) return;
      byId("earlier").replaceChildren(...runs.map((run) => this.#row(run)));
      byId("earlier-empty").hidden = runs.length > 0;
      byId("earlier-more").hidden = !hasMore;
    } catch (error) {
      this.onError(error);
    }
  }

  #row(run) {
    const lasted = run.ended_at ? clockText(Date.parse(run.ended_at) - Date.parse(run.created_at)) : "";
    return element(
      "li",
      {},
      element(
        "button",
        { type: "button", onclick: () => this.onOpen(run) },
        element("span", { class: "call-agent" }, gistOf(run.input)),
        element(
          "span",
          { class: "call-outcome run-status", "data-state": run.status },
          statusNames[run.status] ?? run.status,
        ),
        element("time", { class: "figure muted", datetime: run.created_at }, whenText(run.created_at)),
        element("span", { class: "figure muted" }, lasted),
      ),
    );
  }
}

function gistOf(input) {
  const [first] = Object.values(input);
  if (first === undefined) return "No input";
  return typeof first === "string" ? first : JSON.stringify(input);
}

/** "14:07" today, "19 Nov, 14:07" before. */
function whenText(timestamp) {
  const date = new Date(timestamp);
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? time : `${date.toLocaleDateString([], { day: "numeric", month: "short" })}, ${time}`;
}
