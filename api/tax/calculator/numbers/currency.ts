/** ISO 4217 currencies and the decimal places that their amounts have. */

const known: ReadonlySet<string> = new Set(Intl.supportedValuesOf("currency"));
const digits = new Map<string, number>();

export function isCurrency(code: string): boolean {
  return known.has(code);
}

/** 2 for EUR, 0 for JPY, 3 for KWD. */
export function minorDigitsOf(currency: string): number {
  const cached = digits.get(currency);
  if (cached !== undefined) return cached;
  const format = new Intl.NumberFormat("en", { style: "currency", currency });
  const found = format.resolvedOptions().maximumFractionDigits ?? 2;
  digits.set(currency, found);
  return found;
}
