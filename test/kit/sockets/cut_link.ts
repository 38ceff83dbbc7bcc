/** Passes TCP on to a port, until it is cut: then every connection dies without a word; or stalled: then nothing moves. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export class CutLink {
  readonly #server: Server;
  /** Each socket with the one that it passes on to. */
  readonly #sockets = new Map<Socket, Socket>();
  #stalled = false;
  #refusing = false;

  private constructor(port: number) {
    this.#server = createServer((near) => {
      if (this.#refusing) return void near.resetAndDestroy();
      const far = connect(port, "127.0.0.1");
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.set(from, to);
        from.on("error", () => to.destroy());
        from.on("close", () => this.#sockets.delete(from) && to.destroy());
        if (!this.#stalled) from.pipe(to);
      }
    });
  }

  static async open(port: number): Promise<CutLink> {
    const link = new CutLink(port);
    await new Promise<void>((resolve) => link.#server.listen(0, "127.0.0.1", resolve));
    return link;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  cut(): void {
    for (const socket of this.#sockets.keys()) socket.resetAndDestroy();
  }

  /** Cuts what is there, and whatever comes, until `accept`. */
  refuse(): void {
    this.#refusing = true;
    this.cut();
  }

  accept(): void {
    this.#refusing = false;
  }

  /** Connections live, and nothing gets through, until `flow`. */
  stall(): void {
    this.#stalled = true;
    for (const [from, to] of this.#sockets) from.unpipe(to).pause();
  }

  flow(): void {
    if (!this.#stalled) return;
    this.#stalled = false;
    for (const [from, to] of this.#sockets) from.pipe(to);
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
