/**
 * The agent as a participant of one LiveKit room: hears the caller's microphone, speaks through an
 * audio source, and carries `voice.v1` as data messages of topic `voice.v1`. What stock LiveKit
 * interfaces expect goes beside it: transcripts on `lk.transcription`, the state in `lk.agent.state`,
 * and text from `lk.chat`. With `room_voice.ts` the only place that knows LiveKit's client.
 */
import {
  AudioStream,
  DisconnectReason,
  LocalAudioTrack,
  type RemoteParticipant,
  type RemoteTrack,
  Room,
  RoomEvent,
  TrackKind,
  TrackPublishOptions,
  TrackSource,
} from "@livekit/rtc-node";
import { roomAudio, roomIdentities } from "#contracts/room_call.ts";
import { type SentMessage, voiceLimits, voiceProtocol } from "#contracts/voice_protocol.ts";
import { RoomVoice } from "./room_voice.ts";
import type { FromSeat, RoomToJoin } from "./seat_protocol.ts";

type WithoutSeat<T> = T extends unknown ? Omit<T, "seat"> : never;
/** Everything that a participant reports. `left` is the process's own. */
export type RoomReport = WithoutSeat<Exclude<FromSeat, { kind: "left" | "pong" }>>;

const connectMsMax = 10_000;
const hearingFrameMs = 20;
/** Above this a data packet may be refused on its way: longer messages go as a text stream. */
const dataPacketBytesMax = 14_000;
/** Messages from a caller whose arrival LiveKit has not told yet. */
const earlyMessagesMax = 64;
/** How long a goodbye may still play after the call is over. */
const goodbyeMsMax = 2000;
/** What was sent is on its way for a moment after the client library has taken it; leaving would cut it off. */
const goodbyeMsMin = 300;

/** The caller is gone for good; anything else is a lost link. */
const hangUps: ReadonlySet<DisconnectReason | undefined> = new Set([
  DisconnectReason.CLIENT_INITIATED,
  DisconnectReason.PARTICIPANT_REMOVED,
  DisconnectReason.ROOM_DELETED,
  DisconnectReason.USER_REJECTED,
  DisconnectReason.USER_UNAVAILABLE,
]);

export class RoomParticipant {
  readonly #room = new Room();
  readonly #report: (report: RoomReport) => void;
  readonly #voice: RoomVoice;
  #caller: RemoteParticipant | undefined;
  #early: string[] = [];
  #hearing: ReadableStreamDefaultReader<{ data: Int16Array }> | undefined;
  #isOver = false;
  /** Data messages leave one after the other: their order is the protocol's. */
  #sending: Promise<unknown> = Promise.resolve();
  #transcribing: Promise<unknown> = Promise.resolve();
  #trackSid = "";
  #connecting: Promise<void> = Promise.resolve();
  #state: { shown: string; wanted: string; isSetting: boolean } = { shown: "", wanted: "", isSetting: false };

  constructor(report: (report: RoomReport) => void) {
    this.#report = (said) => {
      if (!this.#isOver) report(said);
    };
    this.#voice = new RoomVoice({
      taken: (bytes) => this.#report({ kind: "taken", bytes }),
      played: (name, cleared) => this.#report({ kind: "text", text: JSON.stringify({ type: "mark", name, cleared }) }),
    });
    this.#listen();
  }

  /** Joins and begins to speak, in silence. @throws Error when the room cannot be joined in time */
  async join({ url, token }: RoomToJoin): Promise<void> {
    this.#connecting = this.#room.connect(url, token, {
      autoSubscribe: true,
      dynacast: false,
      dataStream: { maxPayloadByteLength: voiceLimits.messageBytesMax },
    });
    await within(connectMsMax, this.#connecting);
    const options = new TrackPublishOptions();
    options.source = TrackSource.SOURCE_MICROPHONE;
    const track = LocalAudioTrack.createAudioTrack("agent", this.#voice.source);
    const publication = await within(connectMsMax, this.#me.publishTrack(track, options));
    this.#trackSid = publication.sid ?? "";
    this.#report({ kind: "joined" });
    const caller = this.#room.remoteParticipants.get(roomIdentities.caller);
    if (caller) this.#came(caller);
  }

  /** A message of the call, on its way to the caller; what it means for the room is done here. */
  text(text: string): void {
    this.#send(text);
    const message = JSON.parse(text) as SentMessage;
    switch (message.type) {
      case "clear":
        this.#voice.clear();
        return;
      case "mark":
        this.#voice.mark(message.name);
        return;
      case "state":
        this.#showState(message.state === "tool" ? "thinking" : message.state);
        return;
      case "transcript":
        this.#transcribe(message);
        return;
      case "send_dtmf":
        for (const digit of message.digits) this.#queueSend(() => this.#me.publishDtmf(dtmfCodeOf(digit), digit));
        return;
      default:
        return;
    }
  }

  audio(bytes: Uint8Array): void {
    this.#voice.say(bytes);
  }

  /** Lets what was said be heard, then leaves. */
  async leave(): Promise<void> {
    const goodbyeMs = Math.max(goodbyeMsMin, Math.min(goodbyeMsMax, this.#voice.unplayedMs));
    this.#isOver = true;
    await within(goodbyeMsMax, this.#sending).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, goodbyeMs));
    await this.#hearing?.cancel().catch(() => undefined);
    // A room that is entered only now, too late, is left as well.
    const left = this.#connecting.then(
      () => this.#room.disconnect(),
      () => undefined,
    );
    await within(goodbyeMsMax, left).catch(() => undefined);
    await this.#voice.close();
  }

  get #me() {
    const me = this.#room.localParticipant;
    if (!me) throw new Error("Cannot speak in a room that was not joined");
    return me;
  }

  #listen(): void {
    const room = this.#room;
    const isCaller = (participant: { identity: string } | undefined) => participant?.identity === roomIdentities.caller;
    room.on(RoomEvent.ParticipantConnected, (participant) => {
      if (isCaller(participant)) this.#came(participant);
    });
    room.on(RoomEvent.ParticipantDisconnected, (participant) => {
      if (isCaller(participant)) this.#left(participant);
    });
    room.on(RoomEvent.TrackSubscribed, (track, _publication, participant) => {
      if (isCaller(participant) && track.kind === TrackKind.KIND_AUDIO) void this.#hear(track);
    });
    room.on(RoomEvent.DataReceived, (payload, participant, _kind, topic) => {
      // Data may overtake the news of who has come; then nobody is named.
      if (participant && !isCaller(participant)) return;
      if (topic !== undefined && topic !== "" && topic !== voiceProtocol) return;
      if (payload.byteLength > voiceLimits.messageBytesMax) this.#report({ kind: "oversized" });
      else this.#heardText(new TextDecoder().decode(payload));
    });
    room.on(RoomEvent.DtmfReceived, (_code, digit, participant) => {
      if (isCaller(participant)) this.#heardText(JSON.stringify({ type: "dtmf", digit }));
    });
    room.on(RoomEvent.Reconnecting, () => this.#report({ kind: "interrupted" }));
    room.on(RoomEvent.Reconnected, () => this.#report({ kind: "restored" }));
    room.on(RoomEvent.Disconnected, (reason) => {
      const isDeleted = reason === DisconnectReason.ROOM_DELETED || reason === DisconnectReason.PARTICIPANT_REMOVED;
      this.#report({ kind: "ended", reason: isDeleted ? "room_deleted" : "room_lost" });
    });
    this.#listenToStream(voiceProtocol, (text) => text);
    this.#listenToStream("lk.chat", (text) => JSON.stringify({ type: "user_message", text }));
  }

  /** A text stream of the caller is a message. */
  #listenToStream(topic: string, messageOf: (text: string) => string): void {
    this.#room.registerTextStreamHandler(topic, (reader, { identity }) => {
      if (identity !== roomIdentities.caller) return;
      reader.readAll().then(
        (text) => this.#heardText(messageOf(text)),
        () => this.#report({ kind: "oversized" }),
      );
    });
  }

  #came(participant: RemoteParticipant): void {
    if (this.#caller?.sid === participant.sid) return;
    this.#caller = participant;
    this.#report({ kind: "caller_came", participantSid: participant.sid ?? "" });
    for (const text of this.#early.splice(0)) this.#heardText(text);
  }

  #left(participant: RemoteParticipant): void {
    if (this.#caller?.sid !== participant.sid) return;
    this.#caller = undefined;
    this.#report({ kind: "caller_left", hungUp: hangUps.has(participant.disconnectReason) });
  }

  #heardText(text: string): void {
    // How far was played is known here, at the audio source; the caller's own account of it is not needed.
    if (isMark(text)) return;
    if (this.#caller) this.#report({ kind: "text", text });
    else if (this.#early.length < earlyMessagesMax) this.#early.push(text);
  }

  /** The newest microphone is the one that is heard. */
  async #hear(track: RemoteTrack): Promise<void> {
    await this.#hearing?.cancel().catch(() => undefined);
    const stream = new AudioStream(track, {
      sampleRate: roomAudio.input.sample_rate,
      numChannels: 1,
      frameSizeMs: hearingFrameMs,
    });
    const reader = stream.getReader();
    this.#hearing = reader;
    for (;;) {
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
      if (done || !value) return;
      const { buffer, byteOffset, byteLength } = value.data;
      this.#report({ kind: "audio", bytes: new Uint8Array(buffer, byteOffset, byteLength) });
    }
  }

  #send(text: string): void {
    const bytes = new TextEncoder().encode(text);
    const destination = [roomIdentities.caller];
    this.#queueSend(() =>
      bytes.byteLength > dataPacketBytesMax
        ? this.#me.sendText(text, { topic: voiceProtocol, destinationIdentities: destination })
        : this.#me.publishData(bytes, {
            reliable: true,
            destination_identities: destination,
            topic: voiceProtocol,
          }),
    );
  }

  #queueSend(send: () => Promise<unknown>): void {
    // What cannot be sent is lost with its room, whose end is told by itself.
    this.#sending = this.#sending.then(send).catch(() => undefined);
  }

  #transcribe({ role, text, item_id, final }: Extract<SentMessage, { type: "transcript" }>): void {
    if (text === undefined) return;
    this.#transcribing = this.#transcribing
      .then(async () => {
        const writer = await this.#me.streamText({
          topic: "lk.transcription",
          senderIdentity: role === "user" ? roomIdentities.caller : roomIdentities.agent,
          attributes: {
            "lk.segment_id": item_id,
            "lk.transcription_final": String(final),
            ...(role === "agent" && { "lk.transcribed_track_id": this.#trackSid }),
          },
        });
        await writer.write(text);
        await writer.close();
      })
      .catch(() => undefined);
  }

  /** Only the newest state is shown when they change faster than the server takes them. */
  #showState(state: string): void {
    this.#state.wanted = state;
    if (this.#state.isSetting) return;
    this.#state.isSetting = true;
    void (async () => {
      try {
        while (this.#state.shown !== this.#state.wanted && !this.#isOver) {
          this.#state.shown = this.#state.wanted;
          await this.#me.setAttributes({ "lk.agent.state": this.#state.shown });
        }
      } catch {
        // The room is going away.
      } finally {
        this.#state.isSetting = false;
      }
    })();
  }
}

function isMark(text: string): boolean {
  if (!text.includes('"mark"')) return false;
  try {
    return (JSON.parse(text) as { type?: unknown } | null)?.type === "mark";
  } catch {
    return false;
  }
}

/** Event codes of RFC 4733, section 3.2. */
function dtmfCodeOf(digit: string): number {
  return "0123456789*#ABCD".indexOf(digit);
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`Expected an answer of the LiveKit server within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
