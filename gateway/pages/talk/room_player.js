/**
 * The agent's voice in a room: the browser plays the track, with a jitter buffer of its own; here its
 * loudness is measured. Has the face of the player in `player.js`, whose marks and buffer are the
 * agent's side's in a room.
 */

const levelIntervalMs = 40;

/** @param {(status: {level: number}) => void} onStatus */
export function openRoomPlayer(onStatus) {
  const context = new AudioContext({ latencyHint: "interactive" });
  const analyser = new AnalyserNode(context, { fftSize: 2048 });
  const samples = new Float32Array(analyser.fftSize);
  const sound = new Audio();
  let source;
  const timer = setInterval(() => {
    if (!source) return;
    analyser.getFloatTimeDomainData(samples);
    onStatus({ level: Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length) });
  }, levelIntervalMs);
  // Without a gesture of the caller's the browser may hold the sound back; the call goes on.
  context.resume().catch(() => {});
  return {
    /** @param {MediaStreamTrack} track */
    attach(track) {
      const stream = new MediaStream([track]);
      sound.srcObject = stream;
      sound.play().catch(() => {});
      source?.disconnect();
      source = context.createMediaStreamSource(stream);
      source.connect(analyser);
    },
    play() {},
    mark() {},
    clear() {},
    async close() {
      clearInterval(timer);
      sound.srcObject = null;
      await context.close();
    },
  };
}
