// The format of a log's line or of an answer's body (config.core.v3.SubstitutionFormatString).
import type { TypedExtensionConfig } from "@tulle/xds/envoy/config/core/v3/extension_pb";
import type { SubstitutionFormatString } from "@tulle/xds/envoy/config/core/v3/substitution_format_string_pb";
import type { FormatEnvironment } from "../format/operator.ts";
import { type TextFormat, compileJsonFormat, compileTextFormat } from "../format/substitution-format.ts";
import type { Place, Problems } from "./problems.ts";

const withoutQuery = "type.googleapis.com/envoy.extensions.formatter.req_without_query.v3.ReqWithoutQuery";
/** Extensions that add operators which this proxy knows anyway. */
const knownFormatters = new Set([
  withoutQuery,
  "type.googleapis.com/envoy.extensions.formatter.metadata.v3.Metadata",
  "type.googleapis.com/envoy.extensions.formatter.cel.v3.Cel",
]);

/**
 * Of a formatter that leaves queries out: the parameters, joined by commas, whose values alone are to be left out.
 * Envoy does not read names.
 */
const redactedPrefix = "tulle.redacted_query:";

/** The environment in which formats with these formatters are compiled. */
export function formattersScope(
  formatters: readonly TypedExtensionConfig[],
  environment: FormatEnvironment,
  place: Place,
  problems: Problems,
): FormatEnvironment {
  for (const [index, { name, typedConfig }] of formatters.entries()) {
    if (knownFormatters.has(typedConfig?.typeUrl ?? "")) continue;
    problems.error(place.field("formatters", index), `formatter '${name}' is not supported`);
  }
  const redactedParameters = redactedIn(formatters.map(({ name }) => name));
  if (redactedParameters === undefined) return environment;
  const { environment: variables, hostname } = environment;
  const withoutWholeQuery = formatters.some(
    ({ name, typedConfig }) => typedConfig?.typeUrl === withoutQuery && !name.startsWith(redactedPrefix),
  );
  return { environment: variables, hostname, redactedParameters, ...(withoutWholeQuery ? { withoutWholeQuery } : {}) };
}

/** What the first such name says, of formatters or of a log that has none; undefined without. */
export function redactedIn(names: readonly string[]): ReadonlySet<string> | undefined {
  const name = names.find((each) => each.startsWith(redactedPrefix));
  return name === undefined ? undefined : new Set(name.slice(redactedPrefix.length).toLowerCase().split(","));
}

/** Missing values are `-`, or nothing with `omit_empty_values`. */
export function compileFormatString(
  message: SubstitutionFormatString,
  environment: FormatEnvironment,
  place: Place,
  problems: Problems,
): TextFormat {
  const scope = formattersScope(message.formatters, environment, place, problems);
  const missing = message.omitEmptyValues ? "" : "-";
  const format = message.format;
  switch (format.case) {
    case "textFormat":
      return compileTextFormat(format.value, missing, scope, place.field("text_format"), problems);
    case "textFormatSource": {
      const at = place.field("text_format_source");
      if (format.value.specifier.case === "inlineString") {
        return compileTextFormat(format.value.specifier.value, missing, scope, at, problems);
      }
      problems.error(at, "only inline_string is supported");
      return () => "";
    }
    case "jsonFormat":
      return compileJsonFormat(format.value, message.omitEmptyValues, scope, place.field("json_format"), problems);
    case undefined:
      problems.error(place, "a format is required");
      return () => "";
  }
}
