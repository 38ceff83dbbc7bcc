/**
 * The conversation as it grows: partial texts replace each other, an interrupted answer shows what
 * was heard and strikes the rest. Finished lines are also announced to screen readers, once.
 */
import { durationText, element } from "./dom.js";

const speakers = { user: "You", agent: "Agent" };

export class TranscriptView {
  /** @param {HTMLElement} list @param {HTMLElement} announcer an aria-live region */
  constructor(list, announcer) {
    this.list = list;
    this.announcer = announcer;
    this.clear();
  }

  clear() {
    this.list.replaceChildren();
    this.announcer.replaceChildren();
    /** @type {Map<string, {node: HTMLElement, words: HTMLElement, note: HTMLElement, role: string, turnId: string, text: string, announced: boolean}>} */
    this.items = new Map();
    this.utteranceTurns = new Map();
    /** Lines of the caller's spoken turns, by turn. */
    this.spoken = new Map();
  }

  /** Agent's name, as the lines show it. */
  set agentName(name) {
    this.names = { ...speakers, agent: name };
  }

  take(message) {
    if (message.type === "transcript") this.say(message);
    else if (message.type === "user_speech_started") this.hear(message);
    else if (message.type === "user_speech_stopped") this.heard(message);
    else if (message.type === "agent_speech_started") this.utteranceTurns.set(message.utterance_id, message.turn_id);
    else if (message.type === "truncated") this.correct(message);
  }

  /** The caller speaks: a line that waits for its words, which not every agent recognizes. */
  hear({ turn_id, audio_ms }) {
    const follows = this.isAtEnd();
    const item = this.spoken.get(turn_id) ?? this.add({ item_id: `speech of ${turn_id}`, role: "user", turn_id });
    this.spoken.set(turn_id, Object.assign(item, { sinceMs: item.sinceMs ?? audio_ms }));
    if (!item.text) {
      item.words.textContent = "speaking";
      item.node.classList.add("wordless", "partial");
    }
    if (follows) this.scrollToEnd();
  }

  heard({ turn_id, audio_ms }) {
    const item = this.spoken.get(turn_id);
    if (!item || item.text) return;
    item.words.textContent = `spoke for ${durationText(Math.max(0, audio_ms - item.sinceMs))}`;
    item.node.classList.remove("partial");
  }

  say(message) {
    const follows = this.isAtEnd();
    const item = this.items.get(message.item_id) ?? this.itemFor(message);
    item.node.classList.remove("wordless");
    item.text = message.text ?? item.text + (message.delta ?? "");
    this.render(item);
    item.node.classList.toggle("partial", !message.final);
    if (message.final && !item.announced && item.text) {
      item.announced = true;
      this.announce(`${this.nameOf(message.role)}: ${item.text}`);
    }
    if (follows) this.scrollToEnd();
  }

  /** What was really heard of an utterance that was cut off. */
  correct({ utterance_id, spoken_text, full_text }) {
    const item = this.itemSaying(this.utteranceTurns.get(utterance_id), full_text);
    if (!item) return;
    item.text = full_text;
    item.heard = spoken_text.trimEnd();
    this.render(item);
    item.note.textContent = item.heard ? "interrupted" : "interrupted before it was heard";
    item.node.classList.add("interrupted");
    this.announce(`${this.nameOf("agent")} was interrupted after: ${item.heard || "nothing"}`);
  }

  /** The text, and once it was cut off the part that nobody heard, which may still grow. */
  render({ words, text, heard }) {
    if (heard === undefined) {
      words.textContent = text;
      return;
    }
    const unheard = text.startsWith(heard) ? text.slice(heard.length).trim() : "";
    words.replaceChildren(heard, ...(unheard ? [" ", element("del", {}, unheard)] : []));
  }

  /** A line of the page's own, for example that the link was lost. */
  remark(text) {
    const follows = this.isAtEnd();
    this.list.append(element("li", { class: "remark" }, text));
    this.announce(text);
    if (follows) this.scrollToEnd();
  }

  /** A new item, or the line that already waits for the words of this turn. */
  itemFor(message) {
    const waiting = message.role === "user" ? this.spoken.get(message.turn_id) : undefined;
    if (!waiting || waiting.text) return this.add(message);
    this.items.set(message.item_id, waiting);
    return waiting;
  }

  add({ item_id, role, turn_id }) {
    const words = element("p", { class: "words" });
    const note = element("span", { class: "note" });
    const who = element("span", { class: "who" }, this.nameOf(role));
    const node = element("li", { class: `line ${role}` }, element("div", { class: "byline" }, who, note), words);
    const item = { node, words, note, role, turnId: turn_id, text: "", announced: false };
    this.items.set(item_id, item);
    this.list.append(node);
    return item;
  }

  itemSaying(turnId, text) {
    const spoken = [...this.items.values()].filter((item) => item.role === "agent").reverse();
    const ofTurn = spoken.filter((item) => item.turnId === turnId);
    return ofTurn.find((item) => item.text.trim() === text.trim()) ?? ofTurn[0] ?? spoken[0];
  }

  nameOf(role) {
    return (this.names ?? speakers)[role] ?? role;
  }

  announce(text) {
    this.announcer.append(element("p", {}, text));
    while (this.announcer.childElementCount > 20) this.announcer.firstElementChild.remove();
  }

  /** A reader who has scrolled back is left alone. */
  isAtEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.list.parentElement;
    return scrollHeight - scrollTop - clientHeight < 40;
  }

  scrollToEnd() {
    const box = this.list.parentElement;
    box.scrollTop = box.scrollHeight;
  }
}
