// Parameters of queries that are as good as passwords, in spans as in access logs.
import { secretParameters } from "@tulle/telemetry";
import type { AccessLog } from "@tulle/xds/envoy/config/accesslog/v3/accesslog_pb";
import type { RedactedNames } from "./custom-tag.ts";

/** Whatever a log's configuration says. */
export const alwaysRedacted: RedactedNames = new Set(secretParameters);

/** The word by which a log or its formatter names its own (`compile-format-string.ts`), wherever it stands in it. */
// eslint-disable-next-line no-control-regex -- protobuf ends the name by a tag, JSON by a quote
const redactedWord = /tulle\.redacted_query:([^\x00-\x1f"]*)/g;

/** Of a connection manager with these logs. */
export function redactedNamesOf(logs: readonly AccessLog[]): RedactedNames {
  const names = new Set(alwaysRedacted);
  for (const { configType, name: logName } of logs) {
    if (configType.case !== "typedConfig") continue;
    const text = `${logName}"${Buffer.from(configType.value.value).toString("latin1")}`;
    for (const [, list] of text.matchAll(redactedWord)) {
      for (const name of list!.toLowerCase().split(",")) if (name !== "") names.add(name);
    }
  }
  return names;
}
