/**
 * Durations as Go and protobuf's JSON mapping spell them: `2s`, `1.5h`, `1m30s`. Resources keep the text; whoever
 * translates them asks here for milliseconds.
 */

const unitNs: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3, // U+00B5, the micro sign
  μs: 1e3, // U+03BC, the Greek letter: Go accepts both
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
};

// The longest unit first, or "ms" would be read as "m".
const piece = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/y;

/**
 * Milliseconds of a duration text (fractions possible); undefined when the text is no duration. Negative ones are none.
 */
export function parseDuration(text: string): number | undefined {
  if (text === "0") return 0;
  if (text === "" || text.length > 64) return undefined;
  // In nanoseconds, which are whole: 0.007 s as milliseconds would be 7.000000000000001.
  let totalNs = 0;
  piece.lastIndex = 0;
  while (piece.lastIndex < text.length) {
    const match = piece.exec(text);
    if (match === null) return undefined;
    const [, amount = "", unit = ""] = match;
    totalNs += Math.round(Number(amount) * unitNs[unit]!);
  }
  // Go's durations are 64-bit nanoseconds: about 292 years.
  const totalMs = totalNs / 1e6;
  return totalMs <= 9_223_372_036_854 ? totalMs : undefined;
}
