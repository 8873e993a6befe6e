/** Tags that are added to spans, in the words that Telemetry and the mesh's `defaultConfig.tracing` share. */
import { formatProblem } from "../rules/log-format.ts";
import { headerName } from "../schema/formats.ts";
import { type Infer, map, object, optional, string } from "../schema/schema.ts";

/** What a tag's value comes from. That it says so, and with what, is `tagProblem`'s to tell. */
export const customTag = object(
  {
    literal: optional(object({ value: optional(string(), "The value.") }), "The same value for every span."),
    environment: optional(
      object({
        name: optional(string(), "Variable of the proxy's environment."),
        defaultValue: optional(string(), "The value where there is no such variable."),
      }),
      "The value of a variable.",
    ),
    header: optional(
      object({
        name: optional(string(), "Header of the request."),
        defaultValue: optional(string(), "The value where there is no such header."),
      }),
      "The value of a header.",
    ),
    formatter: optional(
      object({ value: optional(string(), "A format with Envoy's command operators.") }),
      "What a format comes to.",
    ),
  },
  { atMostOne: [["literal", "environment", "header", "formatter"]] },
);

export const customTags = map(customTag);

export type CustomTag = Infer<typeof customTag>;

/** Longer values are cut by back ends, and travel with every span until then. */
const maxTagValueCharacters = 1024;

/** What is wrong with a tag, after its name; undefined when spans can have it. */
export function tagProblem(name: string, tag: CustomTag): string | undefined {
  const { literal, environment, header, formatter } = tag;
  if (name === "") return "has no name";
  if (environment !== undefined && (environment.name ?? "") === "") return "names no variable";
  if (header !== undefined) {
    const wrong = headerName.check(header.name ?? "");
    if (wrong !== undefined) return `names no header: ${wrong}`;
  }
  if (formatter !== undefined) {
    const { value = "" } = formatter;
    // An operator of a formatter that only access logs can name.
    const isOfLogs = value.includes("%REQ_WITHOUT_QUERY(");
    const wrong = value === "" ? "it is empty" : isOfLogs ? "REQ_WITHOUT_QUERY is for logs" : formatProblem(value);
    if (wrong !== undefined) return `has no format: ${wrong}`;
  }
  if (literal !== undefined && (literal.value ?? "") === "") return "has no value";
  if ([literal, environment, header, formatter].every((each) => each === undefined)) {
    return "does not say where its value comes from: literal, environment, header or formatter";
  }
  const values = [literal?.value, environment?.defaultValue, header?.defaultValue, formatter?.value];
  const longest = Math.max(...values.map((value = "") => value.length));
  return longest > maxTagValueCharacters
    ? `has a value of ${longest} characters, the limit is ${maxTagValueCharacters}`
    : undefined;
}

/** Those of the tags that are fine. */
export function soundTags(tags: Readonly<Record<string, CustomTag>>): Readonly<Record<string, CustomTag>> {
  return Object.fromEntries(Object.entries(tags).filter(([name, tag]) => tagProblem(name, tag) === undefined));
}
