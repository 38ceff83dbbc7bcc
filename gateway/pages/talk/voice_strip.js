/**
 * The last seconds of both voices on one line: the caller above it, the agent below. Silence,
 * overlap and interruptions are seen at a glance.
 */
const barsPerS = 20;
const barWidthPx = 3;
const gapPx = 2;

export class VoiceStrip {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.bars = [];
    this.caller = 0;
    this.agent = 0;
    this.timer = undefined;
    this.reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  /** Levels are RMS, 0 to 1; the loudest since the last bar counts. */
  callerLevel(level) {
    this.caller = Math.max(this.caller, level);
  }

  agentLevel(level) {
    this.agent = Math.max(this.agent, level);
  }

  start() {
    this.stop();
    this.bars = [];
    let ticks = 0;
    this.timer = setInterval(() => {
      this.bars.push([shown(this.caller), shown(this.agent)]);
      if (this.bars.length > 400) this.bars.shift();
      this.caller = 0;
      this.agent = 0;
      // With reduced motion the picture changes once a second instead of flowing.
      if (!this.reducedMotion.matches || ++ticks % barsPerS === 0) this.draw();
    }, 1000 / barsPerS);
  }

  stop() {
    clearInterval(this.timer);
  }

  draw() {
    const { canvas, context } = this;
    const scale = devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = canvas;
    canvas.width = width * scale;
    canvas.height = height * scale;
    context.scale(scale, scale);
    const style = getComputedStyle(canvas);
    const middle = Math.round(height * 0.5);
    context.fillStyle = style.getPropertyValue("--strip-line");
    context.fillRect(0, middle, width, 1);
    const visible = Math.floor(width / (barWidthPx + gapPx));
    const bars = this.bars.slice(-visible);
    const colours = [style.getPropertyValue("--caller"), style.getPropertyValue("--agent")];
    bars.forEach(([caller, agent], i) => {
      const x = width - (bars.length - i) * (barWidthPx + gapPx);
      context.fillStyle = colours[0];
      const up = caller * (middle - 3);
      if (up > 0.5) context.fillRect(x, middle - 1 - up, barWidthPx, up);
      context.fillStyle = colours[1];
      const down = agent * (height - middle - 4);
      if (down > 0.5) context.fillRect(x, middle + 2, barWidthPx, down);
    });
  }
}

/** Loudness as heights: -50 dBFS is nothing, -8 dBFS is full. */
function shown(level) {
  return Math.max(0, Math.min(1, (decibels(level) + 50) / 42));
}

/** dBFS of an RMS level; -100 for silence. */
export function decibels(level) {
  return level > 0 ? Math.max(-100, 20 * Math.log10(level)) : -100;
}
