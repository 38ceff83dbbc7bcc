/** The level meters: what goes in from the microphone, what waits in the player. */
import { byId } from "./dom.js";
import { decibels } from "./voice_strip.js";

const inputIntervalMs = 80;

let inputShownAtMs = 0;
/** @param {number} level RMS, 0 to 1; undefined while the microphone is off */
export function showInput(level) {
  const now = performance.now();
  if (level !== undefined && now - inputShownAtMs < inputIntervalMs) return;
  inputShownAtMs = now;
  const db = Math.round(Math.max(-60, decibels(level ?? 0)));
  showMeter("input", db, level === undefined ? "off" : `${db} dB`);
}

/** @param {{bufferedMs: number, underruns: number, droppedMs: number}} status */
export function showPlayer({ bufferedMs, underruns, droppedMs }) {
  const ms = Math.round(bufferedMs);
  showMeter("buffer", ms, `${ms} ms`);
  byId("player-health").textContent = healthOf(underruns, droppedMs);
}

function healthOf(underruns, droppedMs) {
  if (underruns === 0 && droppedMs === 0) return "No gaps in playback.";
  const gaps = `${underruns} ${underruns === 1 ? "gap" : "gaps"} in playback`;
  return droppedMs > 0 ? `${gaps}, ${Math.round(droppedMs)} ms did not fit.` : `${gaps}.`;
}

function showMeter(name, value, text) {
  const meter = byId(`${name}-meter`);
  meter.value = value;
  meter.textContent = text;
  byId(`${name}-value`).textContent = text;
}
