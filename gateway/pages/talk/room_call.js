/**
 * A call in a LiveKit room, as a client: the same messages of voice.v1 as data, sound as tracks. Has
 * the face of `Call` in `call.js`. LiveKit's own client brings a lost link back by itself.
 */
import { endings } from "./call.js";

const topic = "voice.v1";
const pingIntervalMs = 5000;
const hangUpPatienceMs = 3000;
/** A longer message goes as a text stream. */
const dataPacketBytesMax = 14_000;

export class RoomCall {
  /**
   * @param {{url: string, token: string}} session
   * @param {import("./call.js").CallListener} listener
   * @param {(track: MediaStreamTrack) => void} onVoice the agent's voice
   */
  constructor(session, listener, onVoice) {
    this.session = session;
    this.listener = listener;
    this.onVoice = onVoice;
    this.room = undefined;
    this.microphone = undefined;
    this.published = undefined;
    this.over = false;
    this.timers = new Set();
  }

  async connect() {
    this.listener.link("connecting");
    try {
      // Large, and needed by calls in rooms alone.
      const { Room, RoomEvent, Track } = await import("./livekit-client.js");
      if (this.over) return;
      this.source = Track.Source.Microphone;
      const room = new Room({ adaptiveStream: false, dynacast: false, disconnectOnPageLeave: true });
      this.room = room;
      room.on(RoomEvent.DataReceived, (payload, _participant, _kind, from) => {
        if (from === topic) this.take(JSON.parse(new TextDecoder().decode(payload)));
      });
      room.registerTextStreamHandler(topic, async (reader) => this.take(JSON.parse(await reader.readAll())));
      room.on(RoomEvent.TrackSubscribed, (track) => {
        if (track.kind === Track.Kind.Audio) this.onVoice(track.mediaStreamTrack);
      });
      room.on(RoomEvent.Reconnecting, () => this.listener.link("resuming"));
      room.on(RoomEvent.Reconnected, () => this.listener.link("live"));
      room.on(RoomEvent.Disconnected, () => this.finish("closed", "The room was closed."));
      await room.connect(this.session.url, this.session.token);
      if (this.over) return void room.disconnect();
      await this.publish();
      this.keepPinging();
    } catch {
      this.finish("refused", "The LiveKit server could not be reached.");
    }
  }

  /** What the caller says from now on; undefined: nothing. @param {MediaStreamTrack | undefined} track */
  speakWith(track) {
    this.microphone = track;
    if (this.room?.state === "connected") this.publish().catch(() => {});
  }

  async publish() {
    if (this.published === this.microphone) return;
    const [before, now] = [this.published, this.microphone];
    this.published = now;
    const { localParticipant } = this.room;
    if (before) await localParticipant.unpublishTrack(before, false);
    if (now) await localParticipant.publishTrack(now, { source: this.source, stopMicTrackOnMute: false });
  }

  /** @param {object} message of the client; nothing is sent while the link is down */
  send(message) {
    if (this.room?.state !== "connected") return false;
    const text = JSON.stringify(message);
    const bytes = new TextEncoder().encode(text);
    const { localParticipant } = this.room;
    const sending =
      bytes.length > dataPacketBytesMax
        ? localParticipant.sendText(text, { topic })
        : localParticipant.publishData(bytes, { reliable: true, topic });
    // The room's end tells by itself.
    sending.catch(() => {});
    if (message.type !== "ping") this.listener.sent(message);
    return true;
  }

  /** The microphone is a track of the room. */
  sendAudio() {}

  hangUp() {
    if (this.send({ type: "hang_up" })) this.later(hangUpPatienceMs, () => this.drop());
    else this.finish("client_hangup", "You hung up.");
  }

  /** Ends at once: leaving the room hangs up. */
  drop() {
    this.finish("client_hangup", "You hung up.");
  }

  take(message) {
    if (this.over) return;
    if (message.type === "call_started") this.listener.link("live");
    if (message.type === "pong") this.listener.roundTrip(performance.now() - message.timestamp);
    this.listener.message(message);
    if (message.type === "call_ended") {
      this.finish(message.reason, endings[message.reason] ?? "The call has ended.");
    }
  }

  keepPinging() {
    this.later(pingIntervalMs, () => {
      this.send({ type: "ping", timestamp: performance.now() });
      this.keepPinging();
    });
  }

  finish(reason, explanation) {
    if (this.over) return;
    this.over = true;
    for (const timer of this.timers) clearTimeout(timer);
    // The microphone is the page's to stop.
    void this.room?.disconnect(false);
    this.listener.ended({ reason, explanation });
  }

  later(delayMs, action) {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      if (!this.over) action();
    }, delayMs);
    this.timers.add(timer);
  }
}
