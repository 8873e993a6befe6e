// Reads a message from a YAML or JSON document, as Envoy reads its bootstrap file, and tells where in the file what is
// wrong.
import { createRequire } from "node:module";
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Document } from "yaml";
import { messageFromJson, pathSteps } from "./from-json.ts";

export interface DocumentProblem {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
  readonly path: string;
  readonly message: string;
}

export type DocumentResult<T> =
  | { readonly ok: true; readonly message: T }
  | {
      readonly ok: false;
      readonly problems: readonly DocumentProblem[];
      /** As of `JsonResult`; undefined where the document cannot be read at all. */
      readonly rest: T | undefined;
    };

const load = createRequire(import.meta.url);

/** Loaded when it is needed: a sound JSON document, such as the agent's bootstrap, needs no places. */
function loadYaml(): typeof import("yaml") {
  return load("yaml") as typeof import("yaml");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** `file` is only for the problems. JSON is read too, being YAML. */
export function messageFromYaml<D extends DescMessage>(
  schema: D,
  text: string,
  file: string,
): DocumentResult<MessageShape<D>> {
  const parsed = text.trimStart().startsWith("{") ? parseJson(text) : undefined;
  if (parsed !== undefined) {
    const result = messageFromJson(schema, parsed);
    if (result.ok) return result;
  }
  const { LineCounter, parseDocument } = loadYaml();
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, uniqueKeys: true });
  const place = (offset: number): Pick<DocumentProblem, "line" | "column"> => {
    const { line, col } = lineCounter.linePos(offset);
    return { line, column: col };
  };
  if (document.errors.length > 0) {
    const problems = document.errors.map((error) => {
      const message = error.message.split("\n")[0]!.replace(/ at line \d+, column \d+:?$/, "");
      return { file, ...place(error.pos[0]), path: "", message };
    });
    return { ok: false, problems, rest: undefined };
  }
  const result = messageFromJson(schema, document.toJS({ maxAliasCount: 100 }));
  if (result.ok) return result;
  const problems = result.problems.map(({ path, message }) => {
    return { file, ...place(offsetOf(document, path)), path, message };
  });
  return { ok: false, problems, rest: result.rest };
}

/** The place of the deepest part of `path` that the document holds. */
function offsetOf(document: Document, path: string): number {
  let node: unknown = document.contents;
  let offset = 0;
  for (const step of pathSteps(path)) {
    const pair = pairOf(node, step);
    if (pair === undefined) break;
    offset = pair.offset;
    node = pair.value;
  }
  return offset;
}

interface RangedNode {
  readonly range?: readonly number[] | null;
  readonly items?: readonly unknown[];
}

function pairOf(node: unknown, step: string | number): { offset: number; value: unknown } | undefined {
  const items = (node as RangedNode | null)?.items;
  if (items === undefined) return undefined;
  if (typeof step === "number") {
    const item = items[step] as RangedNode | undefined;
    return item === undefined ? undefined : { offset: item.range?.[0] ?? 0, value: item };
  }
  for (const item of items as readonly { key?: RangedNode & { value?: unknown }; value?: unknown }[]) {
    if (item.key?.value === step) return { offset: item.key.range?.[0] ?? 0, value: item.value };
  }
  return undefined;
}

/** `file:line:column: path: message`, as compilers write it. */
export function formatDocumentProblem(problem: DocumentProblem): string {
  const { file, line, column, path, message } = problem;
  return `${file}:${line}:${column}: ${path === "" ? "" : `${path}: `}${message}`;
}
