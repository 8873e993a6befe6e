// Tags that the configuration adds to spans (type.tracing.v3.CustomTag). Secrets never reach a span: headers that carry
// them are told of by a word, and parameters of queries as in the access log.
import {
  type CustomTag as CustomTagMessage,
  CustomTag_ValueType as ValueType,
} from "@tulle/xds/envoy/type/tracing/v3/custom_tag_pb";
import type { CompileScope } from "../fields/compile-scope.ts";
import type { Place, Problems } from "../fields/problems.ts";
import { redactedValue, redactQuery } from "../format/redact-query.ts";
import { utf8AsLatin1 } from "../http/header-value.ts";
import { requestHeader } from "../http/read-header.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { TagSink } from "./active-span.ts";
import type { RedactedNames } from "../format/redacted-names.ts";
import type { CustomTag } from "./custom-tag.ts";
import { compileSpanFormat, secretHeaders } from "./span-format.ts";

export function compileCustomTags(
  messages: readonly CustomTagMessage[],
  redactedNames: RedactedNames,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): readonly CustomTag[] {
  const tags: CustomTag[] = [];
  for (const [index, message] of messages.entries()) {
    const at = place.field("custom_tags", index);
    if (message.tag === "") problems.error(at.field("tag"), "value length must be at least 1 characters");
    const value = compileValue(message, redactedNames, scope, at, problems);
    const type = message.type.case === "value" ? typeOf(message.valueType) : "text";
    // Of two with one name the first holds (Envoy).
    if (value !== undefined && !tags.some(({ name }) => name === message.tag)) {
      tags.push({ name: utf8AsLatin1(message.tag), value, type });
    }
  }
  return tags;
}

function typeOf(valueType: ValueType): CustomTag["type"] {
  switch (valueType) {
    case ValueType.INT:
      return "int";
    case ValueType.DOUBLE:
      return "double";
    case ValueType.BOOL:
      return "bool";
    default:
      return "text";
  }
}

function compileValue(
  { type }: CustomTagMessage,
  known: RedactedNames,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): CustomTag["value"] | undefined {
  switch (type.case) {
    case "literal": {
      const literal = utf8AsLatin1(type.value.value);
      if (literal === "")
        problems.error(place.field("literal").field("value"), "value length must be at least 1 characters");
      return () => literal;
    }
    case "environment": {
      const { name, defaultValue } = type.value;
      if (name === "")
        problems.error(place.field("environment").field("name"), "value length must be at least 1 characters");
      const value = utf8AsLatin1(scope.environment[name] ?? defaultValue);
      return () => value;
    }
    case "requestHeader": {
      const name = type.value.name.toLowerCase();
      if (name === "")
        problems.error(place.field("request_header").field("name"), "value length must be at least 1 characters");
      const otherwise = utf8AsLatin1(type.value.defaultValue);
      if (secretHeaders.has(name))
        return ({ request }) => (request?.headers.has(name) === true ? redactedValue : otherwise);
      const read = requestHeader(name);
      return ({ request }, redactedNames) => {
        const value = request === undefined ? undefined : read(request);
        return value === undefined ? otherwise : redactQuery(value, redactedNames);
      };
    }
    case "metadata":
      return compileMetadataTag(type.value, place.field("metadata"), problems);
    case "value":
      return compileSpanFormat(type.value, known, scope, place.field("value"), problems);
    case undefined:
      problems.error(place, "a type is required: literal, environment, request_header, metadata or value");
      return undefined;
  }
}

type MetadataTag = Extract<CustomTagMessage["type"], { case: "metadata" }>["value"];

const metadataKinds: Readonly<Record<string, (info: StreamInfo) => unknown>> = {
  request: (info) => info.dynamicMetadata,
  route: (info) => info.route?.metadata,
  cluster: (info) => info.cluster?.metadata,
  host: (info) => info.upstreamHost?.metadata,
};

function compileMetadataTag(
  { kind, metadataKey, defaultValue }: MetadataTag,
  place: Place,
  problems: Problems,
): CustomTag["value"] | undefined {
  const read = metadataKinds[kind?.kind.case ?? "request"];
  if (read === undefined || metadataKey === undefined || metadataKey.key === "") {
    problems.error(place, "a kind and a metadata_key are required");
    return undefined;
  }
  const keys = [metadataKey.key, ...metadataKey.path.map((part) => part.segment.value ?? "")];
  const otherwise = utf8AsLatin1(defaultValue);
  return (info) => {
    let value = read(info);
    for (const key of keys) {
      if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return otherwise;
      value = (value as Readonly<Record<string, unknown>>)[key];
    }
    if (value === null || value === undefined) return otherwise;
    return utf8AsLatin1(typeof value === "string" ? value : JSON.stringify(value));
  };
}

const integer = /^[+-]?\d{1,18}$/;

/** What is no such value is text. */
export function writeCustomTag(
  { name, value, type }: CustomTag,
  info: StreamInfo,
  redactedNames: RedactedNames,
  sink: TagSink,
): void {
  const text = value(info, redactedNames);
  if (text === undefined || text === "") return;
  if (type === "int" && integer.test(text)) sink.typedTag(name, BigInt(text));
  else if (type === "double" && Number.isFinite(Number(text))) sink.typedTag(name, Number(text));
  else if (type === "bool" && (text === "true" || text === "false")) sink.typedTag(name, text === "true");
  else sink.tag(name, text);
}
