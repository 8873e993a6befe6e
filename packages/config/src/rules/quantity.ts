// A quantity of Kubernetes: `512Mi`, `1G`, `1.5Gi`, `100m`, `1e3`. Exact, as a fraction.

export interface Quantity {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

const thousands = ["", "k", "M", "G", "T", "P", "E"];
const fractions = ["", "m", "u", "n"];

/** At most 20 digits and two of an exponent: no quantity needs more, and none may cost time. */
const quantityText = /^(\d{1,20})?(?:\.(\d{0,20}))?(?:[eE]([+-]?\d{1,2})|([a-zA-Z]{0,2}))$/;

/** Undefined for what is no quantity, or below 0. */
export function parseQuantity(text: string): Quantity | undefined {
  const [, whole = "", decimals = "", exponent, unit = ""] = quantityText.exec(text) ?? [];
  if (whole + decimals === "") return undefined;
  const [scale, binary] = exponent === undefined ? scaleOf(unit) : [Number(exponent), 0];
  if (scale === undefined || binary === undefined) return undefined;
  const digits = BigInt(whole + decimals) * 2n ** BigInt(binary);
  const tens = scale - decimals.length;
  return {
    numerator: tens > 0 ? digits * 10n ** BigInt(tens) : digits,
    denominator: tens < 0 ? 10n ** BigInt(-tens) : 1n,
  };
}

/** As powers of ten and of two; both undefined for no unit. */
function scaleOf(unit: string): readonly [tens?: number, twos?: number] {
  if (thousands.includes(unit)) return [thousands.indexOf(unit) * 3, 0];
  if (fractions.includes(unit)) return [fractions.indexOf(unit) * -3, 0];
  const binary = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].indexOf(unit);
  return binary < 0 ? [] : [0, binary * 10];
}

/** How many of `unit` cover the quantity, rounded up as Kubernetes does. */
export function quantityIn(quantity: Quantity, unit: Quantity): bigint {
  const dividend = quantity.numerator * unit.denominator;
  const divisor = quantity.denominator * unit.numerator;
  return (dividend + divisor - 1n) / divisor;
}

/** Whole bytes; undefined for what is no quantity above 0. */
export function memoryQuantityBytes(text: string): number | undefined {
  const quantity = parseQuantity(text);
  const bytes = quantity === undefined ? 0 : Number(quantity.numerator / quantity.denominator);
  return bytes > 0 && Number.isSafeInteger(bytes) ? bytes : undefined;
}
