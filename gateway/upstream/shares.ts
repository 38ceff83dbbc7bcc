/** An amount (connections, bytes) that all callers share: bounded in all, for each address and for each tenant. */
import type { Requester } from "./requester.ts";

export interface ShareLimits {
  total: number;
  /** Below `total`, so that one address leaves room for others. */
  address: number;
  tenant: number;
}

export class Shares {
  readonly #limits: ShareLimits;
  readonly #byAddress = new Map<string, number>();
  readonly #byTenant = new Map<string, number>();
  #taken = 0;

  constructor(limits: ShareLimits) {
    this.#limits = limits;
  }

  get taken(): number {
    return this.#taken;
  }

  hasRoom({ address, tenant }: Requester, amount: number): boolean {
    return (
      this.#taken + amount <= this.#limits.total &&
      (this.#byAddress.get(address) ?? 0) + amount <= this.#limits.address &&
      (this.#byTenant.get(tenant) ?? 0) + amount <= this.#limits.tenant
    );
  }

  /** @returns false, and takes nothing, where there is no room */
  take(requester: Requester, amount: number): boolean {
    if (!this.hasRoom(requester, amount)) return false;
    this.#add(requester, amount);
    return true;
  }

  /** Gives back what was taken. */
  give(requester: Requester, amount: number): void {
    this.#add(requester, -amount);
  }

  #add({ address, tenant }: Requester, amount: number): void {
    this.#taken += amount;
    addTo(this.#byAddress, address, amount);
    addTo(this.#byTenant, tenant, amount);
  }
}

/** What comes to 0 is forgotten: the map holds only who has something. */
export function addTo<Key>(amounts: Map<Key, number>, key: Key, amount: number): void {
  const sum = (amounts.get(key) ?? 0) + amount;
  if (sum === 0) amounts.delete(key);
  else amounts.set(key, sum);
}
