// Istio's `stats.PluginConfig` (istio/proxy, istio_stats/config.proto) as it comes: a TypedStruct or the message's own
// bytes. It is not among Envoy's messages, so that it is read here, field by field.
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import type { Place, Problems } from "../../../fields/problems.ts";
import type { TypedConfig } from "../../../fields/typed-config.ts";

export interface MetricConfig {
  /** Tags and the expressions that give their values. */
  readonly dimensions: ReadonlyMap<string, string>;
  /** Without `istio_`; empty = all. */
  readonly name: string;
  readonly tagsToRemove: readonly string[];
  /** An expression; empty = always. */
  readonly match: string;
  readonly drop: boolean;
}

export type DefinedType = "COUNTER" | "GAUGE" | "HISTOGRAM";

export interface MetricDefinition {
  readonly name: string;
  readonly value: string;
  readonly type: DefinedType;
}

export interface PluginConfig {
  readonly disableHostHeaderFallback: boolean;
  readonly tcpReportingDurationMs: number | undefined;
  readonly metrics: readonly MetricConfig[];
  readonly definitions: readonly MetricDefinition[];
  readonly reporter: "UNSPECIFIED" | "SERVER_GATEWAY";
  readonly rotationIntervalMs: number | undefined;
  readonly gracefulDeletionIntervalMs: number | undefined;
}

type FieldType = "bool" | "text" | "texts" | "duration" | "map" | "type" | "reporter" | Message;
interface Message {
  /** By name; `many` of them. */
  readonly [field: string]: readonly [number: number, type: FieldType];
}

const metricMessage: Message = {
  dimensions: [1, "map"],
  name: [2, "text"],
  tags_to_remove: [3, "texts"],
  match: [4, "text"],
  drop: [5, "bool"],
};
const definitionMessage: Message = { name: [1, "text"], value: [2, "text"], type: [3, "type"] };
const pluginMessage: Message = {
  disable_host_header_fallback: [6, "bool"],
  tcp_reporting_duration: [7, "duration"],
  metrics: [8, metricMessage],
  definitions: [9, definitionMessage],
  reporter: [10, "reporter"],
  rotation_interval: [11, "duration"],
  graceful_deletion_interval: [12, "duration"],
};
const enums = { type: ["COUNTER", "GAUGE", "HISTOGRAM"], reporter: ["UNSPECIFIED", "SERVER_GATEWAY"] } as const;

type Read = Readonly<Record<string, unknown>>;

export function readPluginConfig(config: TypedConfig, place: Place, problems: Problems): PluginConfig {
  if (config.form === "json") return pluginConfig(messageOfJson(config.json, pluginMessage, place, problems));
  try {
    return pluginConfig(messageOfBytes(new BinaryReader(config.bytes), config.bytes.length, pluginMessage));
  } catch {
    problems.error(place, "the configuration is no stats.PluginConfig");
    return pluginConfig({});
  }
}

/** Of the metadata of a filter chain. */
export function readPluginJson(json: Read, place: Place, problems: Problems): PluginConfig {
  return pluginConfig(messageOfJson(json, pluginMessage, place, problems));
}

function pluginConfig(read: Read): PluginConfig {
  return {
    disableHostHeaderFallback: read["disable_host_header_fallback"] === true,
    tcpReportingDurationMs: read["tcp_reporting_duration"] as number | undefined,
    metrics: listOf(read["metrics"]).map((metric) => ({
      dimensions: (metric["dimensions"] as ReadonlyMap<string, string> | undefined) ?? new Map(),
      name: textOf(metric["name"]),
      tagsToRemove: (metric["tags_to_remove"] as string[] | undefined) ?? [],
      match: textOf(metric["match"]),
      drop: metric["drop"] === true,
    })),
    definitions: listOf(read["definitions"]).map(({ name, value, type = "COUNTER" }) => ({
      name: textOf(name),
      value: textOf(value),
      type: type as DefinedType,
    })),
    reporter: read["reporter"] === "SERVER_GATEWAY" ? "SERVER_GATEWAY" : "UNSPECIFIED",
    rotationIntervalMs: read["rotation_interval"] as number | undefined,
    gracefulDeletionIntervalMs: read["graceful_deletion_interval"] as number | undefined,
  };
}

const listOf = (value: unknown): readonly Read[] => (value as Read[] | undefined) ?? [];
const textOf = (value: unknown): string => (value as string | undefined) ?? "";

/** `tcp_reporting_duration` and `tcpReportingDuration` are one field (protobuf's JSON). */
function messageOfJson(json: Read, message: Message, place: Place, problems: Problems): Read {
  const read: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(json)) {
    const name = key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const field = Object.hasOwn(message, name) ? message[name] : undefined;
    if (field === undefined) {
      problems.warning(place.field(key), "ignored: stats.PluginConfig has no such field");
      continue;
    }
    const known = fieldOfJson(value, field[1], place.field(key), problems);
    if (known === undefined) problems.error(place.field(key), "has a value of another type");
    else read[name] = known;
  }
  return read;
}

function fieldOfJson(value: unknown, type: FieldType, place: Place, problems: Problems): unknown {
  switch (type) {
    case "bool":
      return typeof value === "boolean" ? value : undefined;
    case "text":
      return typeof value === "string" ? value : undefined;
    case "texts":
      return Array.isArray(value) && value.every((text) => typeof text === "string") ? value : undefined;
    case "duration":
      return typeof value === "string" && /^\d+(\.\d+)?s$/.test(value) ? parseFloat(value) * 1000 : undefined;
    case "map":
      return isRecord(value) && Object.values(value).every((text) => typeof text === "string")
        ? new Map(Object.entries(value))
        : undefined;
    case "type":
    case "reporter":
      return (enums[type] as readonly unknown[]).includes(value) ? value : enums[type][value as number];
    default:
      return Array.isArray(value) && value.every(isRecord)
        ? value.map((element, index) => messageOfJson(element, type, place.field("", index), problems))
        : undefined;
  }
}

function isRecord(value: unknown): value is Read {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function messageOfBytes(reader: BinaryReader, length: number, message: Message): Read {
  const read: Record<string, unknown> = {};
  const end = reader.pos + length;
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    const entry = Object.entries(message).find(([, [known]]) => known === number);
    if (entry === undefined) reader.skip(wireType, number);
    else addOfBytes(read, entry[0], entry[1][1], wireType, reader);
  }
  return read;
}

function addOfBytes(
  read: Record<string, unknown>,
  name: string,
  type: FieldType,
  wireType: WireType,
  reader: BinaryReader,
): void {
  const isNumber = type === "bool" || type === "type" || type === "reporter";
  if (wireType !== (isNumber ? WireType.Varint : WireType.LengthDelimited)) throw new Error(`${name} is malformed`);
  if (type === "bool") read[name] = reader.bool();
  else if (type === "type" || type === "reporter") read[name] = enums[type][reader.int32()];
  else if (type === "text") read[name] = reader.string();
  else if (type === "texts") read[name] = [...((read[name] as string[] | undefined) ?? []), reader.string()];
  else if (type === "duration") {
    const { seconds = 0, nanos = 0 } = numbersOfBytes(reader);
    read[name] = seconds * 1000 + nanos / 1e6;
  } else if (type === "map") {
    const entry = messageOfBytes(reader, reader.uint32(), { key: [1, "text"], value: [2, "text"] });
    const map = (read[name] as Map<string, string> | undefined) ?? new Map<string, string>();
    read[name] = map.set(textOf(entry["key"]), textOf(entry["value"]));
  } else read[name] = [...listOf(read[name]), messageOfBytes(reader, reader.uint32(), type)];
}

/** google.protobuf.Duration. */
function numbersOfBytes(reader: BinaryReader): { seconds?: number; nanos?: number } {
  const numbers: { seconds?: number; nanos?: number } = {};
  const end = reader.uint32() + reader.pos;
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    if (number === 1) numbers.seconds = Number(reader.int64());
    else if (number === 2) numbers.nanos = reader.int32();
    else reader.skip(wireType, number);
  }
  return numbers;
}
