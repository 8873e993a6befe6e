// A quantity of memory as Kubernetes writes it: `512Mi`, `1G`, `1.5Gi`, `134217728`.

const units: Readonly<Record<string, number>> = {
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/** Whole bytes; undefined for what is no quantity above 0. */
export function memoryQuantityBytes(text: string): number | undefined {
  const [, digits = "", unit = ""] = /^(\d+(?:\.\d+)?)([a-zA-Z]*)$/.exec(text) ?? [];
  const factor = Object.hasOwn(units, unit) ? units[unit] : undefined;
  const bytes = factor === undefined ? 0 : Math.floor(Number(digits) * factor);
  return bytes > 0 && Number.isSafeInteger(bytes) ? bytes : undefined;
}
