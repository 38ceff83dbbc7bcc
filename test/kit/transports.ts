/** The gateway's two transports, as tests go through them: the native one is not to be had everywhere. */

/** The reason to skip tests of native sockets, or false where they load. */
const nativeMissing = await import("#gateway/transport/uws_transport.ts").then(
  () => false as const,
  () => "the native sockets do not load here" as const,
);

export const transports = [
  { transport: "uws", skip: nativeMissing },
  { transport: "ws", skip: false },
] as const;

/** The native one, or the other where it does not load. */
export const bestTransport = nativeMissing ? "ws" : "uws";
