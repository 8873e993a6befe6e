// The series of a page of `/stats` by name. To sort ten thousand at once held requests up for milliseconds: parts are
// sorted and merged, and whoever asks for pieces may let requests in between.
import type { Metric, Series } from "@tulle/telemetry";

export interface NamedSeries {
  readonly name: string;
  readonly metric: Metric;
}

/** Series between two pauses. */
const partSize = 256;

/** Each empty piece is a place for a pause. `accepts` is asked once for each that has a name in Envoy's tree. */
export function* sortedSeries(
  all: Iterable<Series>,
  accepts: (series: Series, name: string) => boolean,
): Generator<string, readonly NamedSeries[]> {
  let parts: NamedSeries[][] = [];
  let part: NamedSeries[] = [];
  let seen = 0;
  for (const series of all) {
    seen += 1;
    if (seen % partSize === 0) yield "";
    const name = series.statName;
    if (name === undefined || !accepts(series, name)) continue;
    part.push({ name, metric: series.metric });
    if (part.length < partSize) continue;
    parts.push(part.sort(byName));
    part = [];
  }
  parts.push(part.sort(byName));
  while (parts.length > 1) {
    const merged: NamedSeries[][] = [];
    for (let index = 0; index < parts.length; index += 2) {
      merged.push(yield* mergedParts(parts[index]!, parts[index + 1] ?? []));
    }
    parts = merged;
  }
  return parts[0]!;
}

function byName(a: NamedSeries, b: NamedSeries): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

function* mergedParts(first: readonly NamedSeries[], second: readonly NamedSeries[]): Generator<string, NamedSeries[]> {
  const merged: NamedSeries[] = [];
  let [one, other] = [0, 0];
  while (one < first.length || other < second.length) {
    const isFirst = other >= second.length || (one < first.length && byName(first[one]!, second[other]!) <= 0);
    merged.push(isFirst ? first[one++]! : second[other++]!);
    if (merged.length % partSize === 0) yield "";
  }
  return merged;
}
