/**
 * The schema language: each kind of resource is described once, as plain data, and its TypeScript type, its validation,
 * its JSON Schema (for CRDs) and its docs all come from that description.
 *
 * Own combinators instead of a library: zod, TypeBox and valibot know nothing of source positions, of the nearest name
 * for an unknown field, of fields that are accepted but not implemented yet, or of Kubernetes fields that are somebody
 * else's business. Those four are most of what is needed here; the rest is this file.
 */
import type { FindingCode } from "../findings/finding.ts";
import type { Path } from "../findings/places.ts";
import type { Format } from "./formats.ts";

/**
 * What using a field does today. All fields are checked alike.
 * - `implemented`: it takes effect.
 * - `notImplemented`: it is accepted and has no effect, or only the one that is named: a warning where it is used.
 * - `narrows`: it says whom, where or when the resource is for, and is not honoured. Without it the resource would hold
 *   for more than is written, so that the resource is refused: an error where it is used.
 *
 * docs/istio-api.md is made of this.
 */
export type FieldStatus = "implemented" | "notImplemented" | "narrows";

/**
 * How a rule of an object tells what it found; `path` is relative to that object, the code is IST0106 unless given,
 * which alone is an error by itself.
 */
export type Report = (problem: {
  readonly path?: Path;
  readonly message: string;
  readonly suggestion?: string;
  readonly code?: FindingCode;
  readonly severity?: "error" | "warning";
}) => void;

/** A constraint between the fields of one object, run after each field alone is valid. */
export type Rule<T> = (value: T, report: Report) => void;

export interface StringNode {
  readonly type: "string";
  readonly format?: Format;
}
export interface EnumNode {
  readonly type: "enum";
  readonly values: readonly string[];
  readonly notImplemented: readonly string[];
  /** Deprecated value → what to write instead. */
  readonly deprecated: Readonly<Record<string, string>>;
  /** Any case is taken, and the value becomes the listed spelling (protocols of ports). */
  readonly ignoreCase: boolean;
}
export interface NumberNode {
  readonly type: "integer" | "number";
  readonly minimum?: number;
  readonly maximum?: number;
}
export interface BooleanNode {
  readonly type: "boolean";
}
/** A port number or a port name, as Kubernetes' IntOrString. */
export interface IntOrStringNode {
  readonly type: "intOrString";
}
/** Whatever JSON can say (google.protobuf.Struct and its values). */
export interface JsonNode {
  readonly type: "json";
}
export interface ListNode {
  readonly type: "list";
  readonly items: Node;
  readonly minItems: number;
  /** The field of the items whose values may not repeat. */
  readonly uniqueBy?: string;
}
export interface MapNode {
  readonly type: "map";
  readonly values: Node;
  readonly keyFormat?: Format;
}
export interface ObjectNode {
  readonly type: "object";
  readonly fields: Readonly<Record<string, FieldNode>>;
  /** Names that Kubernetes has and the mesh does not look at. */
  readonly unread: readonly string[];
  readonly exactlyOne: readonly (readonly string[])[];
  readonly atMostOne: readonly (readonly string[])[];
  readonly rules: readonly Rule<never>[];
}
export interface FieldNode {
  readonly node: Node;
  readonly required: boolean;
  readonly status: FieldStatus;
  readonly description: string;
  /**
   * What a field that is not implemented does, after its name; of one that narrows, what the resource would do without
   * it.
   */
  readonly effect?: string;
  /** Of a field that narrows: values that mean the same as no field. */
  readonly saysNothing?: readonly unknown[];
  /** What to write instead. */
  readonly deprecated?: string;
  /** The value of a field that was left out. */
  readonly default?: unknown;
  /** No value of it may be told to anybody. */
  readonly secret?: boolean;
}
export type Node =
  | StringNode
  | EnumNode
  | NumberNode
  | BooleanNode
  | IntOrStringNode
  | JsonNode
  | ListNode
  | MapNode
  | ObjectNode;

export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

declare const valueOf: unique symbol;

/** A node that remembers the TypeScript type of its values. */
export interface Schema<T> {
  readonly node: Node;
  readonly [valueOf]?: T;
}
export type Infer<S> = S extends Schema<infer T> ? T : never;

export interface Field<T, Required extends boolean> extends FieldNode {
  readonly required: Required;
  readonly [valueOf]?: T;
}

export interface DefaultedField<T> extends Field<T, false> {
  readonly default: unknown;
}

type FieldValue<F> = F extends Field<infer T, boolean> ? T : never;
type IsPresent<F extends FieldNode> = F["required"] extends true
  ? true
  : F extends { readonly default: unknown }
    ? true
    : false;
type Fields = Readonly<Record<string, FieldNode>>;
type Flatten<T> = { [K in keyof T]: T[K] };

/** The object type that a record of fields describes. */
export type ObjectValue<F extends Fields> = Flatten<
  { readonly [K in keyof F as IsPresent<F[K]> extends true ? K : never]: FieldValue<F[K]> } & {
    readonly [K in keyof F as IsPresent<F[K]> extends true ? never : K]?: FieldValue<F[K]>;
  }
>;

export function string(format?: Format): Schema<string> {
  return { node: format === undefined ? { type: "string" } : { type: "string", format } };
}

export function integer(range: { readonly minimum?: number; readonly maximum?: number } = {}): Schema<number> {
  return { node: { type: "integer", ...range } };
}

export function number(range: { readonly minimum?: number; readonly maximum?: number } = {}): Schema<number> {
  return { node: { type: "number", ...range } };
}

export function boolean(): Schema<boolean> {
  return { node: { type: "boolean" } };
}

export function intOrString(): Schema<number | string> {
  return { node: { type: "intOrString" } };
}

export function json(): Schema<Json> {
  return { node: { type: "json" } };
}

export function enumeration<const V extends string>(
  values: readonly V[],
  options: {
    readonly notImplemented?: readonly NoInfer<V>[];
    readonly deprecated?: Readonly<Partial<Record<NoInfer<V>, string>>>;
    readonly ignoreCase?: boolean;
  } = {},
): Schema<V> {
  const { notImplemented = [], ignoreCase = false } = options;
  const replacements = (options.deprecated ?? {}) as Readonly<Record<string, string>>;
  return { node: { type: "enum", values, notImplemented, deprecated: replacements, ignoreCase } };
}

export function list<T>(
  items: Schema<T>,
  options: { readonly minItems?: number; readonly uniqueBy?: keyof T & string } = {},
): Schema<readonly T[]> {
  return { node: { type: "list", items: items.node, minItems: 0, ...options } };
}

export function map<T>(values: Schema<T>, keyFormat?: Format): Schema<Readonly<Record<string, T>>> {
  const node: MapNode = { type: "map", values: values.node };
  return { node: keyFormat === undefined ? node : { ...node, keyFormat } };
}

export function object<const F extends Fields>(
  fields: F,
  options: {
    readonly unread?: readonly string[];
    readonly exactlyOne?: readonly (readonly (keyof F & string)[])[];
    readonly atMostOne?: readonly (readonly (keyof F & string)[])[];
    readonly rules?: readonly Rule<ObjectValue<F>>[];
  } = {},
): Schema<ObjectValue<F>> {
  const { unread = [], exactlyOne = [], atMostOne = [], rules = [] } = options;
  return { node: { type: "object", fields, unread, exactlyOne, atMostOne, rules } };
}

/** A field that must be there. */
export function required<T>(schema: Schema<T>, description: string): Field<T, true> {
  return { node: schema.node, required: true, status: "implemented", description };
}

/** A field that may be there. */
export function optional<T>(schema: Schema<T>, description: string): Field<T, false> {
  return { node: schema.node, required: false, status: "implemented", description };
}

/** A field that may be left out, and then has this value: readers always find it. */
export function defaulted<T>(schema: Schema<T>, value: NoInfer<T>, description: string): DefaultedField<T> {
  return { node: schema.node, required: false, status: "implemented", description, default: value };
}

/** A field of Istio's that is checked and has no effect yet, or only the one named: using it gives a warning. */
export function notYet<T>(schema: Schema<T>, description: string, effect = "has no effect"): Field<T, false> {
  return { node: schema.node, required: false, status: "notImplemented", description, effect };
}

/**
 * A field of Istio's that narrows what the resource is for and is not honoured yet: using it is an error, since
 * `otherwise` the resource would be applied wider than it is written.
 */
export function narrowing<T>(
  schema: Schema<T>,
  description: string,
  otherwise: string,
  saysNothing: readonly NoInfer<T>[] = [],
): Field<T, false> {
  return { node: schema.node, required: false, status: "narrows", description, effect: otherwise, saysNothing };
}

/** A field that still works, with the advice what to write instead. */
export function deprecated<T, R extends boolean>(field: Field<T, R>, instead: string): Field<T, R> {
  return { ...field, deprecated: instead };
}

/** A field whose values no message repeats. */
export function secret<T, R extends boolean>(field: Field<T, R>): Field<T, R> {
  return { ...field, secret: true };
}
