// Node's own parser as a second opinion on request messages. It is at hand without a package, though not documented.
import { createRequire } from "node:module";

interface LlhttpParser {
  [event: number]: (...values: never[]) => unknown;
  initialize(type: number, resource: object, maxHeaderSize: number, lenientFlags: number): void;
  execute(data: Buffer): number | Error;
  finish(): number | Error;
}
interface LlhttpConstructor {
  new (): LlhttpParser;
  readonly REQUEST: number;
  readonly kOnHeadersComplete: number;
  readonly kOnBody: number;
  readonly kOnMessageComplete: number;
}

const { HTTPParser, methods } = createRequire(import.meta.url)("node:_http_common") as {
  HTTPParser: LlhttpConstructor;
  methods: readonly string[];
};

export interface OracleRequest {
  readonly method: string;
  readonly url: string;
  /** Names as they came, in order, values trimmed. */
  readonly headers: readonly string[];
  body: string;
}

export interface OracleVerdict {
  readonly complete: readonly OracleRequest[];
  readonly error: string | undefined;
}

// One for all messages: a parser's own memory is freed only when it is collected, which its size on the heap does not
// hasten.
const parser = new HTTPParser();

export function llhttpVerdict(bytes: Buffer): OracleVerdict {
  parser.initialize(HTTPParser.REQUEST, {}, 1024 * 1024, 0);
  const complete: OracleRequest[] = [];
  let current: OracleRequest | undefined;
  parser[HTTPParser.kOnHeadersComplete] = (
    _major: number,
    _minor: number,
    headers: string[],
    method: number,
    url: string,
  ): number => {
    current = { method: methods[method]!, url, headers, body: "" };
    return 0;
  };
  parser[HTTPParser.kOnBody] = (chunk: Buffer): void => {
    current!.body += chunk.toString("latin1");
  };
  parser[HTTPParser.kOnMessageComplete] = (): void => {
    complete.push(current!);
  };
  const result = parser.execute(bytes);
  const code = result instanceof Error ? (result as NodeJS.ErrnoException).code : undefined;
  return { complete, error: code };
}
