// Reads a bootstrap file, YAML or JSON, as strictly as Envoy: an unknown field is refused with its place and the nearest
// known name.
import { readFile } from "node:fs/promises";
import { type Bootstrap, BootstrapSchema } from "@tulle/xds/envoy/config/bootstrap/v3/bootstrap_pb";
import { formatDocumentProblem, messageFromYaml } from "@tulle/xds/json";

/** Says, one a line and with places, why a proxy cannot start. */
export class BootstrapError extends Error {
  override readonly name = "BootstrapError";
  readonly lines: readonly string[];

  constructor(lines: readonly string[]) {
    super(lines.join("\n"));
    this.lines = lines;
  }
}

/** `file` is only for the places in messages. @throws {BootstrapError} */
export function parseBootstrap(text: string, file: string): Bootstrap {
  const result = messageFromYaml(BootstrapSchema, text, file);
  if (result.ok) return result.message;
  throw new BootstrapError(result.problems.map(formatDocumentProblem));
}

/** @throws {BootstrapError} when the file cannot be read or is not a bootstrap. */
export async function readBootstrap(path: string): Promise<Bootstrap> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new BootstrapError([code === "ENOENT" ? `there is no file ${path}` : `${path}: ${message}`]);
  }
  return parseBootstrap(text, path);
}
