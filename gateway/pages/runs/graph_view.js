/** The workflow as a line with stations: what a run has passed is brass, where it stands it glows. */
import { layOut } from "./graph_layout.js";
import { wordsOf } from "./node_kinds.js";
import { stateNames } from "./run_words.js";

const radius = 17;
/** Room for one station and its words; the width gives way, between these, to the place there is. */
const across = { rankMin: 104, rankMax: 150, lane: 80 };
const down = { rank: 74, laneMin: 112, laneMax: 190 };

export class GraphView {
  #definition;
  #stations = new Map();
  #lines = [];
  #narrow = matchMedia("(max-width: 760px)");

  /** @param {HTMLElement} place @param {(nodeId: string) => void} onPick */
  constructor(place, onPick) {
    this.place = place;
    this.onPick = onPick;
    this.#narrow.addEventListener("change", () => {
      const { run } = this;
      if (this.#definition) this.show(this.#definition);
      if (run) this.update(run);
    });
  }

  /** @param {object | undefined} definition */
  show(definition) {
    this.#definition = definition;
    this.#stations.clear();
    this.#lines = [];
    this.run = undefined;
    this.place.replaceChildren();
    if (!definition) return;
    const isDown = this.#narrow.matches;
    const { places, ranks, lanes } = layOut(definition);
    const room = this.place.clientWidth - 8;
    const step = isDown
      ? { rank: down.rank, lane: Math.min(down.laneMax, Math.max(down.laneMin, room / lanes)) }
      : { rank: Math.min(across.rankMax, Math.max(across.rankMin, room / ranks)), lane: across.lane };
    const charsMax = Math.floor((isDown ? step.lane - radius * 2 - 14 : step.rank - 6) / 6.6);
    const [width, height] = isDown ? [lanes * step.lane, ranks * step.rank] : [ranks * step.rank, lanes * step.lane];
    const at = (id) => {
      const { rank, lane } = places.get(id);
      return isDown
        ? { x: lane * step.lane + radius + 6, y: (rank + 0.5) * step.rank }
        : { x: (rank + 0.5) * step.rank, y: lane * step.lane + radius + 14 };
    };
    const drawing = svg("svg", {
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      class: isDown ? "graph down" : "graph",
      role: "list",
      "aria-label": "Nodes of the workflow",
    });
    drawing.style.width = `${width}px`;
    drawing.style.height = `${height}px`;
    for (const edge of definition.edges) drawing.append(this.#line(edge, at(edge.from), at(edge.to), isDown));
    for (const node of definition.nodes) drawing.append(this.#station(node, at(node.id), isDown, charsMax));
    this.place.append(drawing);
  }

  /** @param {import("./run_state.js").emptyRun} run */
  update(run) {
    this.run = run;
    for (const [id, station] of this.#stations) {
      const state = run.nodes.get(id)?.is ?? "idle";
      if (station.group.getAttribute("data-is") === state) continue;
      station.group.setAttribute("data-is", state);
      station.group.setAttribute("aria-label", `${station.name}: ${stateNames[state]}`);
      station.title.textContent = `${station.name}: ${stateNames[state]}`;
    }
    for (const { from, to, handle, group } of this.#lines) {
      const before = run.nodes.get(from);
      const after = run.nodes.get(to);
      const left =
        before?.is === "succeeded" ? (before.handle ?? "default") : before?.is === "failed" ? "error" : undefined;
      const taken = left !== undefined && left === handle && after !== undefined && after.is !== "skipped";
      const closed = after?.is === "skipped" || before?.is === "skipped" || (left !== undefined && left !== handle);
      group.setAttribute("data-is", taken ? "taken" : closed ? "closed" : "idle");
    }
  }

  #station(node, { x, y }, isDown, charsMax) {
    const name = node.name ?? node.id;
    const group = svg("g", {
      class: "station",
      "data-is": "idle",
      transform: `translate(${x} ${y})`,
      role: "listitem",
      "aria-label": `${name}: ${stateNames.idle}`,
    });
    const title = svg("title", {}, `${name}: ${stateNames.idle}`);
    const icon = svg("path", {
      d: wordsOf(node.type).icon,
      class: "icon",
      transform: "translate(-10 -10) scale(0.8333)",
    });
    group.append(
      title,
      svg("circle", { r: radius + 5, class: "halo" }),
      svg("circle", { r: radius, class: "disc" }),
      icon,
    );
    const lines = wrap(name, charsMax, isDown ? 3 : 2);
    lines.forEach((line, i) => {
      const place = isDown
        ? { x: radius + 9, y: 4 + (i - (lines.length - 1) / 2) * 14 }
        : { x: 0, y: radius + 19 + i * 14, "text-anchor": "middle" };
      group.append(svg("text", { ...place, class: "label" }, line));
    });
    group.addEventListener("click", () => this.onPick(node.id));
    this.#stations.set(node.id, { group, title, name });
    return group;
  }

  #line({ from, to, handle = "default" }, a, b, isDown) {
    const group = svg("g", { class: "edge", "data-is": "idle", "aria-hidden": "true" });
    const [x1, y1, x2, y2] = isDown
      ? [a.x, a.y + radius + 3, b.x, b.y - radius - 3]
      : [a.x + radius + 3, a.y, b.x - radius - 3, b.y];
    const middle = isDown ? (y1 + y2) / 2 : (x1 + x2) / 2;
    const curve = isDown
      ? `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`
      : `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
    group.append(svg("path", { d: curve, class: "track" }), svg("path", { d: curve, class: "way", pathLength: "1" }));
    if (handle !== "default") {
      const words = isDown
        ? { x: (x1 + x2) / 2 + 8, y: middle + 4 }
        : { x: (x1 + x2) / 2, y: (y1 + y2) / 2 - 7 + Math.sign(y2 - y1) * 2, "text-anchor": "middle" };
      group.append(svg("text", { ...words, class: "handle" }, handle));
    }
    this.#lines.push({ from, to, handle, group });
    return group;
  }
}

function svg(tag, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  if (text !== undefined) node.textContent = text;
  return node;
}

/** `text` in at most `linesMax` lines of about `charsMax` characters; what is left over becomes an ellipsis. */
function wrap(text, charsMax, linesMax) {
  const lines = [""];
  for (const word of text.split(/\s+/)) {
    const line = lines.at(-1);
    if (line === "" || line.length + 1 + word.length <= charsMax)
      lines[lines.length - 1] = line ? `${line} ${word}` : word;
    else lines.push(word);
  }
  const kept = lines
    .slice(0, linesMax)
    .map((line) => (line.length > charsMax + 3 ? `${line.slice(0, charsMax)}…` : line));
  if (lines.length > linesMax) kept[linesMax - 1] = `${kept[linesMax - 1].replace(/…$/, "")}…`;
  return kept;
}
