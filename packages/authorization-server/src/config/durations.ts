// Durations as people write them in configuration: `60s`, `5m`, `12h`, `30d`.

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds; undefined when the text is no duration. */
export function parseDurationMs(text: string): number | undefined {
  const match = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text);
  return match === null ? undefined : Number(match[1]) * unitMs[match[2]!]!;
}
