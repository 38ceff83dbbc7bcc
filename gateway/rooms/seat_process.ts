/**
 * A process that sits in rooms for a gateway, started by `seat_pool.ts`: native media stays apart
 * from the gateway's loop, and a crash of it takes no other call along. It ends with its gateway:
 * when the channel closes it leaves its rooms, so that nobody talks to a ghost.
 */
import { dispose } from "@livekit/rtc-node";
import { RoomParticipant } from "./room_participant.ts";
import { type FromSeat, type ToSeat, withoutTokens } from "./seat_protocol.ts";

/** Caller audio that waits for the gateway to read it; then the newest is dropped. */
const unreadBytesMax = 4 * 1024 * 1024;
/** For leaving the rooms once the gateway is gone. */
const goodbyeMsMax = 1000;

const seats = new Map<number, RoomParticipant>();
let outbox: FromSeat[] = [];
let isFlushDue = false;
let unreadBytes = 0;

function tell(message: FromSeat): void {
  if (message.kind === "audio") {
    if (unreadBytes > unreadBytesMax) return;
    unreadBytes += message.bytes.byteLength;
  }
  outbox.push(message);
  if (isFlushDue) return;
  isFlushDue = true;
  setImmediate(flush);
}

/** One message a turn of the loop, however much there is to tell. */
function flush(): void {
  isFlushDue = false;
  const batch = outbox;
  outbox = [];
  const bytes = batch.reduce((sum, message) => sum + (message.kind === "audio" ? message.bytes.byteLength : 0), 0);
  if (!process.connected) return;
  process.send?.(batch, undefined, undefined, () => {
    unreadBytes -= bytes;
  });
}

async function join({ seat, room }: Extract<ToSeat, { kind: "join" }>): Promise<void> {
  const participant = new RoomParticipant((report) => tell({ ...report, seat } as FromSeat));
  seats.set(seat, participant);
  try {
    await participant.join(room);
  } catch (error) {
    tell({ kind: "failed", seat, reason: withoutTokens(error instanceof Error ? error.message : String(error)) });
    await leave(seat);
  }
}

async function leave(seat: number): Promise<void> {
  const participant = seats.get(seat);
  if (!participant) return;
  seats.delete(seat);
  await participant.leave();
  tell({ kind: "left", seat });
}

process.on("message", (batch: ToSeat[]) => {
  for (const message of batch) {
    const participant = seats.get(message.seat);
    if (message.kind === "join") void join(message);
    else if (message.kind === "leave") void leave(message.seat);
    else if (message.kind === "ping") tell({ kind: "pong", seat: message.seat });
    else if (message.kind === "text") participant?.text(message.text);
    else participant?.audio(message.bytes);
  }
});

process.on("disconnect", () => {
  setTimeout(() => process.exit(0), goodbyeMsMax);
  void Promise.allSettled([...seats.keys()].map(leave))
    .then(dispose)
    .finally(() => process.exit(0));
});

// A promise that the client library forgot, of one room, must not end the calls in the others.
process.on("unhandledRejection", (reason) => process.stderr.write(`${String(reason)}\n`));

// A terminal's Ctrl-C and a supervisor's signal to the group are the gateway's to handle.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
