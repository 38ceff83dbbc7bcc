/** The slots of this process: counted from acceptance, never sampled. */
export interface Slot {
  /** Gives it back; the second time nothing happens. */
  release(): void;
}

export class CallSlots {
  readonly total: number;
  #taken = 0;

  constructor(total: number) {
    this.total = total;
  }

  get inUse(): number {
    return this.#taken;
  }

  take(): Slot | undefined {
    if (this.#taken >= this.total) return undefined;
    this.#taken += 1;
    let held = true;
    return {
      release: () => {
        if (!held) return;
        held = false;
        this.#taken -= 1;
      },
    };
  }
}
