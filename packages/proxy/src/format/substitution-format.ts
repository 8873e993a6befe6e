// Compiles Envoy's format strings (`%REQ(X?Y):Z%`) into arrays of functions, for access logs and header values. The
// request path then only calls and joins.
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { StreamInfo } from "../http/stream-info.ts";
import type { RequestHead, ResponseHead } from "../http/message.ts";
import type { Place, Problems } from "../fields/problems.ts";
import type { CompiledOperator, FormatEnvironment, FormatValue } from "./operator.ts";
import { compileOperator } from "./operators.ts";

export type TextFormat = (
  info: StreamInfo,
  request: RequestHead | undefined,
  response: ResponseHead | undefined,
) => string;

type Part = string | CompiledOperator;

/** `%%`, or `%NAME(argument):length%`; an argument may hold percent signs (`%START_TIME(%Y/%m/%d)%`). */
const command = /%(?:%|([A-Z][A-Z0-9_]*)(?:\((.*?)\))?(?::(\d+))?%)/sy;

function parseParts(format: string, environment: FormatEnvironment, place: Place, problems: Problems): Part[] {
  const parts: Part[] = [];
  let literal = "";
  let index = 0;
  while (index < format.length) {
    const percent = format.indexOf("%", index);
    if (percent < 0) break;
    literal += format.slice(index, percent);
    command.lastIndex = percent;
    const match = command.exec(format);
    if (match === null) {
      problems.error(place, `Incorrect configuration: '${format}'. Couldn't find valid command at position ${percent}`);
      return [];
    }
    index = percent + match[0].length;
    if (match[1] === undefined) {
      literal += "%";
      continue;
    }
    const maxLength = match[3] === undefined ? undefined : Number(match[3]);
    const operator = compileOperator(match[1], match[2], maxLength, environment);
    if ("error" in operator) {
      problems.error(place, operator.error);
      return [];
    }
    if (operator.warning !== undefined) problems.warning(place, operator.warning);
    if (literal !== "") parts.push(literal);
    literal = "";
    parts.push(operator);
  }
  literal += format.slice(index);
  if (literal !== "") parts.push(literal);
  return parts;
}

/** A format whose missing values are `missing`: `-` for access logs, nothing for header values. */
export function compileTextFormat(
  format: string,
  missing: "-" | "",
  environment: FormatEnvironment,
  place: Place,
  problems: Problems,
): TextFormat {
  if (!format.includes("%")) return constantFormat(format);
  const parts = parseParts(format, environment, place, problems);
  if (parts.every((part) => typeof part === "string")) return constantFormat(parts.join(""));
  return joinedFormat(parts, missing);
}

function constantFormat(text: string): TextFormat {
  return () => text;
}

function joinedFormat(parts: readonly Part[], missing: "-" | ""): TextFormat {
  // Literals and values alternate, so that the loop has no branch on the kind of part.
  const literals: string[] = [];
  const values: FormatValue[] = [];
  let literal = "";
  for (const part of parts) {
    if (typeof part === "string") {
      literal += part;
      continue;
    }
    literals.push(literal);
    literal = "";
    values.push(part.value);
  }
  const last = literal;
  return (info, request, response) => {
    let line = "";
    for (let index = 0; index < values.length; index += 1) {
      line += literals[index]! + (values[index]!(info, request, response) ?? missing);
    }
    return line + last;
  };
}

type JsonPart = (
  info: StreamInfo,
  request: RequestHead | undefined,
  response: ResponseHead | undefined,
) => string | undefined;

/**
 * A JSON format: strings are formats of their own. One that is a single operator gives null where it is missing, a
 * number where the operator counts something, and the value itself where it reads one of any type. Keys are sorted, as
 * Envoy writes them.
 */
export function compileJsonFormat(
  format: JsonObject,
  omitEmpty: boolean,
  environment: FormatEnvironment,
  place: Place,
  problems: Problems,
): TextFormat {
  const value = compileJsonValue(format, { omitEmpty, environment, problems }, place);
  return (info, request, response) => `${value(info, request, response) ?? "{}"}\n`;
}

interface JsonCompile {
  readonly omitEmpty: boolean;
  readonly environment: FormatEnvironment;
  readonly problems: Problems;
}

function compileJsonValue(value: JsonValue, compile: JsonCompile, place: Place): JsonPart {
  if (typeof value === "string") return compileJsonText(value, compile, place);
  if (Array.isArray(value)) {
    const parts = value.map((element, index) => compileJsonValue(element, compile, place.field("", index)));
    return (info, request, response) => `[${parts.map((part) => part(info, request, response) ?? "null").join(",")}]`;
  }
  if (typeof value === "object" && value !== null) return compileJsonObject(value, compile, place);
  const constant = JSON.stringify(value);
  return () => constant;
}

function compileJsonObject(value: JsonObject, compile: JsonCompile, place: Place): JsonPart {
  const entries = Object.keys(value)
    .sort()
    .map((key) => ({
      prefix: `${JSON.stringify(key)}:`,
      part: compileJsonValue(value[key]!, compile, place.field(key)),
    }));
  return (info, request, response) => {
    let text = "";
    for (const { prefix, part } of entries) {
      const rendered = part(info, request, response);
      if (rendered !== undefined) text += `${text === "" ? "" : ","}${prefix}${rendered}`;
    }
    return `{${text}}`;
  };
}

function compileJsonText(format: string, compile: JsonCompile, place: Place): JsonPart {
  const parts = parseParts(format, compile.environment, place, compile.problems);
  const only = parts.length === 1 ? parts[0] : undefined;
  if (only !== undefined && typeof only !== "string") {
    const absent = compile.omitEmpty ? undefined : "null";
    const { json } = only;
    if (json !== undefined) return (info, request, response) => json(info, request, response) ?? absent;
    return (info, request, response) => {
      const value = only.value(info, request, response);
      if (value === undefined) return absent;
      return only.isNumber ? value : JSON.stringify(value);
    };
  }
  const text = compileTextFormat(format, compile.omitEmpty ? "" : "-", compile.environment, place, compile.problems);
  return (info, request, response) => JSON.stringify(text(info, request, response));
}
