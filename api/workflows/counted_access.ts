/** Values that charge a budget whenever somebody looks into them. */
import { type Budget, spendText } from "./evaluation_budget.ts";

export interface CountedAccess {
  /** A stand-in for a JSON value, and for all that is read through it. */
  counted(value: unknown): unknown;
  /** What a stand-in stands for; any other value as it is. */
  original(value: unknown): unknown;
}

/** Looking at a text is charged by its length: whoever asked for it may compare or measure it. */
export function countedAccess(budget: Budget): CountedAccess {
  const originals = new WeakMap<object, object>();
  const standIns = new WeakMap<object, object>();
  const handler: ProxyHandler<object> = {
    get(target, name) {
      // A length is asked for before each place.
      if (name !== "length") budget.spend(1);
      return counted(Reflect.get(target, name));
    },
    ownKeys(target) {
      const keys = Reflect.ownKeys(target);
      budget.spend(1 + keys.length);
      return keys;
    },
  };

  function counted(value: unknown): unknown {
    if (typeof value === "string") spendText(budget, value.length);
    if (value === null || typeof value !== "object") return value;
    let standIn = standIns.get(value);
    if (!standIn) {
      standIn = new Proxy(value, handler);
      standIns.set(value, standIn);
      originals.set(standIn, value);
    }
    return standIn;
  }

  return { counted, original: (value) => originals.get(value as object) ?? value };
}
