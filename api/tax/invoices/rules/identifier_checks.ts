/** Check digits of identifiers that Peppol routes by, by scheme. What has no check here is taken as it is. */

const digitsOf = (text: string) => [...text].map(Number);

/** GS1's check digit: weights 3 and 1 from the right. */
export function isGln(text: string): boolean {
  if (!/^\d{2,}$/.test(text)) return false;
  const [check, ...rest] = digitsOf(text).reverse();
  const sum = rest.reduce((total, digit, index) => total + digit * (index % 2 === 0 ? 3 : 1), 0);
  return (10 - (sum % 10)) % 10 === check;
}

/** Nine digits, modulo 11 with weights 2 to 7 from the right. */
export function isNorwegianNumber(text: string): boolean {
  if (!/^\d{9}$/.test(text) || Number(text) === 0) return false;
  const [check, ...rest] = digitsOf(text).reverse();
  const sum = rest.reduce((total, digit, index) => total + digit * ((index % 6) + 2), 0);
  return (11 - (sum % 11)) % 11 === check;
}

/** CVR: eight digits, with or without DK before them. */
export const isDanishNumber = (text: string): boolean => /^(DK)?\d{8}$/.test(text);

/** Ten digits, the last two 97 minus the rest modulo 97. */
export function isBelgianNumber(text: string): boolean {
  return /^\d{10}$/.test(text) && 97 - (Number(text.slice(0, 8)) % 97) === Number(text.slice(8));
}

/** Ten digits with Luhn's check digit. */
export function isSwedishNumber(text: string): boolean {
  if (!/^\d{10}$/.test(text)) return false;
  const sum = digitsOf(text).reduce((total, digit, index) => {
    const weighted = index % 2 === 0 ? digit * 2 : digit;
    return total + (weighted > 9 ? weighted - 9 : weighted);
  }, 0);
  return sum % 10 === 0;
}

/** ABN: eleven digits, modulo 89. */
export function isAustralianNumber(text: string): boolean {
  if (!/^\d{11}$/.test(text)) return false;
  const weights = [10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19];
  const sum = digitsOf(text).reduce(
    (total, digit, index) => total + (index === 0 ? digit - 1 : digit) * (weights[index] ?? 0),
    0,
  );
  return sum % 89 === 0;
}

/** Peppol's rules by the ISO 6523 scheme that they are for. */
export const schemeChecks: readonly { rule: string; scheme: string; what: string; isValid(text: string): boolean }[] = [
  { rule: "PEPPOL-COMMON-R040", scheme: "0088", what: "a GLN with its check digit", isValid: isGln },
  { rule: "PEPPOL-COMMON-R041", scheme: "0192", what: "a Norwegian organization number", isValid: isNorwegianNumber },
  { rule: "PEPPOL-COMMON-R042", scheme: "0184", what: "a Danish CVR number", isValid: isDanishNumber },
  { rule: "PEPPOL-COMMON-R043", scheme: "0208", what: "a Belgian enterprise number", isValid: isBelgianNumber },
  { rule: "PEPPOL-COMMON-R049", scheme: "0007", what: "a Swedish organization number", isValid: isSwedishNumber },
  { rule: "PEPPOL-COMMON-R050", scheme: "0151", what: "an Australian Business Number", isValid: isAustralianNumber },
];
