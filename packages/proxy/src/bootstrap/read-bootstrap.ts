// Reads a bootstrap file, YAML or JSON, as strictly as Envoy: an unknown field is refused with its place and the
// nearest known name.
import { readFile } from "node:fs/promises";
import { type Bootstrap, BootstrapSchema } from "@tulle/xds/envoy/config/bootstrap/v3/bootstrap_pb";
import { formatDocumentProblem, messageFromYaml } from "@tulle/xds/json";

import { type NodeNames, nameNode } from "./name-node.ts";
import { isIgnored } from "../fields/check-fields.ts";
import { checkBootstrap } from "./check-bootstrap.ts";
import { bootstrapMessage } from "./bootstrap-fields.ts";

/** Says, one a line and with places, why a proxy cannot start. */
export class BootstrapError extends Error {
  override readonly name = "BootstrapError";
  readonly lines: readonly string[];

  constructor(lines: readonly string[]) {
    super(lines.join("\n"));
    this.lines = lines;
  }
}

/**
 * `file` is only for the places in messages; `names` come from the command line. What is wrong beyond the spelling is
 * told in the same error, but for what a misspelt field may be the cause of. @throws {BootstrapError}
 */
export function parseBootstrap(text: string, file: string, names: NodeNames = {}): Bootstrap {
  const result = messageFromYaml(BootstrapSchema, text, file);
  if (result.ok) {
    nameNode(result.message, names);
    return result.message;
  }
  const { rest } = result;
  if (rest !== undefined) nameNode(rest, names);
  const problems = result.problems.filter(({ path }) => !isOfIgnoredExtension(path));
  if (problems.length === 0 && rest !== undefined) return rest;
  const others = rest === undefined ? [] : checkBootstrap(rest).problems;
  const spoilt = problems.map(({ path }) => parentOf(path));
  const told = others.filter((line) => !spoilt.some((place) => line.startsWith(place)));
  throw new BootstrapError([...problems.map(formatDocumentProblem), ...told.map((line) => `${file}: ${line}`)]);
}

/**
 * An extension that this build does not know, at a place that it reads nothing of, or one where those that it knows are
 * enough, as among sinks of statistics: the field itself is told of.
 */
function isOfIgnoredExtension(path: string): boolean {
  if (!path.endsWith(".@type")) return false;
  const field = /^[^.[]*/.exec(path)![0];
  return field === "stats_sinks" || isIgnored(bootstrapMessage, field);
}

/**
 * The message in which a field stands, or an extension; empty for the document itself, where anything may follow from a
 * mistake.
 */
function parentOf(path: string): string {
  const field = path.replace(/(\["[^"]*"\])?\.@type$/, "");
  return field.slice(0, Math.max(0, field.lastIndexOf(".")));
}

/** @throws {BootstrapError} when the file cannot be read or is not a bootstrap. */
export async function readBootstrap(path: string, names: NodeNames = {}): Promise<Bootstrap> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new BootstrapError([code === "ENOENT" ? `there is no file ${path}` : `${path}: ${message}`]);
  }
  return parseBootstrap(text, path, names);
}
