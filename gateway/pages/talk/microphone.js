/** The caller's microphone as 16 kHz Int16 frames of 20 ms. */

/** Why there is no microphone, in words for the caller. */
export class MicrophoneError extends Error {}

/**
 * Asks for the microphone and starts it.
 * @param {(frame: ArrayBuffer, level: number) => void} onFrame level is the frame's RMS, 0 to 1
 * @param {() => void} onLost the device was unplugged or the permission withdrawn
 * @throws {MicrophoneError}
 */
export async function openMicrophone(onFrame, onLost) {
  if (!navigator.mediaDevices?.getUserMedia) {
    throw new MicrophoneError(
      "Browsers give the microphone to secure addresses only: open this page over https or as localhost.",
    );
  }
  const stream = await navigator.mediaDevices
    .getUserMedia({ audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 } })
    .catch((error) => {
      throw new MicrophoneError(reasonOf(error), { cause: error });
    });
  const context = new AudioContext({ latencyHint: "interactive" });
  try {
    await context.audioWorklet.addModule("/talk/recorder_worklet.js");
    await context.resume();
  } catch (error) {
    stopTracks(stream);
    await context.close();
    throw new MicrophoneError("This browser could not start its audio engine.", { cause: error });
  }
  const recorder = new AudioWorkletNode(context, "recorder", { channelCount: 1, channelCountMode: "explicit" });
  recorder.port.onmessage = ({ data }) => onFrame(data, levelOf(new Int16Array(data)));
  // The recorder puts out silence; some browsers run only what reaches the destination.
  context.createMediaStreamSource(stream).connect(recorder).connect(context.destination);
  for (const track of stream.getTracks()) track.addEventListener("ended", onLost);
  return {
    /** As it comes from the device, for whoever sends it in another way. */
    track: stream.getAudioTracks()[0],
    async close() {
      recorder.port.onmessage = null;
      stopTracks(stream);
      await context.close();
    },
  };
}

function stopTracks(stream) {
  for (const track of stream.getTracks()) track.stop();
}

/** RMS of Int16 samples, 0 to 1. */
function levelOf(samples) {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return Math.sqrt(sum / samples.length) / 32768;
}

function reasonOf(error) {
  switch (error?.name) {
    case "NotAllowedError":
      return "The microphone is blocked for this page. Allow it in the address bar, or type instead.";
    case "NotFoundError":
      return "No microphone is connected. Connect one, or type instead.";
    case "NotReadableError":
      return "Another program holds the microphone. Close it there, or type instead.";
    default:
      return "The microphone could not be opened. You can type instead.";
  }
}
