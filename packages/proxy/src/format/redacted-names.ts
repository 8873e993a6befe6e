// Parameters of queries that are as good as passwords, in spans, labels of metrics and debug lines.
import { redactionMetadata, secretParameters } from "@tulle/telemetry";

/** In lower case. */
export type RedactedNames = ReadonlySet<string>;

/** Whatever a listener says. */
export const alwaysRedacted: RedactedNames = new Set(secretParameters);

/** Of a listener with this `filter_metadata`, where the mesh may have named more; what is no list counts as none. */
export function redactedNamesOf(metadata: Readonly<Record<string, unknown>>): RedactedNames {
  const { [redactionMetadata.key]: ofTulle } = metadata;
  if (typeof ofTulle !== "object" || ofTulle === null) return alwaysRedacted;
  const own: unknown = Reflect.get(ofTulle, redactionMetadata.field);
  if (!Array.isArray(own)) return alwaysRedacted;
  const names = own.filter((name) => typeof name === "string" && name !== "");
  return new Set([...alwaysRedacted, ...names.map((name: string) => name.toLowerCase())]);
}
