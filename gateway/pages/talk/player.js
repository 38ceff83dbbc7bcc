/** The agent's voice through the speakers, with the marks that say what has really been heard. */

/**
 * @param {number} sampleRateHz of the audio that will be played
 * @param {(name: string, cleared: boolean) => void} onMark
 * @param {(status: {bufferedMs: number, level: number, underruns: number, droppedMs: number}) => void} onStatus
 */
export async function openPlayer(sampleRateHz, onMark, onStatus) {
  const context = new AudioContext({ sampleRate: sampleRateHz, latencyHint: "interactive" });
  await context.audioWorklet.addModule("/talk/player_worklet.js");
  const node = new AudioWorkletNode(context, "player", { numberOfInputs: 0, outputChannelCount: [1] });
  node.connect(context.destination);
  node.port.onmessage = ({ data }) => {
    if (data.mark === undefined) return onStatus(data);
    if (data.cleared) return onMark(data.mark, true);
    // It left the worklet; it is heard when the device has played its own buffer.
    setTimeout(() => onMark(data.mark, false), (context.outputLatency || 0) * 1000);
  };
  // Without a gesture of the caller's the browser may hold the sound back; the call goes on.
  context.resume().catch(() => {});
  return {
    /** @param {ArrayBuffer} samples Int16, mono; handed over */
    play(samples) {
      node.port.postMessage(samples, [samples]);
    },
    mark(name) {
      node.port.postMessage({ mark: name });
    },
    clear() {
      node.port.postMessage({ clear: true });
    },
    resume: () => context.resume(),
    async close() {
      node.port.onmessage = null;
      await context.close();
    },
  };
}
