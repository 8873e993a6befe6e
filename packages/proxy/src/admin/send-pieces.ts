// Long pages of the admin interface, written in slices between which requests are served; compressed where that is
// asked for.
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Writable } from "node:stream";
import { Pauses } from "@tulle/timing";

/** Gathered for one write: a thousand small ones cost more than the text. */
const writeCharacters = 64 * 1024;

export interface PiecewiseResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly pieces: Iterable<string>;
}

/** Resolves when all is written or nobody reads any more. */
export async function sendPieces(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers, pieces }: PiecewiseResponse,
): Promise<void> {
  const isCompressed = acceptsGzip(request.headers["accept-encoding"]);
  response.writeHead(status, {
    ...headers,
    ...(isCompressed && { "content-encoding": "gzip", vary: "Accept, Accept-Encoding" }),
  });
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const output = isCompressed ? compressing(response) : response;
  try {
    await writePieces(pieces, output, gone.signal);
    output.end();
  } catch (error) {
    if (!gone.signal.aborted) response.destroy(error instanceof Error ? error : undefined);
  } finally {
    if (gone.signal.aborted) output.destroy();
  }
}

function compressing(response: ServerResponse): Writable {
  // Loaded by who asks for it: a proxy that nobody scrapes does without.
  const gzip = process.getBuiltinModule("node:zlib").createGzip({ level: 1 });
  gzip.on("error", () => response.destroy());
  gzip.pipe(response);
  return gzip;
}

async function writePieces(pieces: Iterable<string>, output: Writable, gone: AbortSignal): Promise<void> {
  const pauses = new Pauses();
  let gathered: string[] = [];
  let characters = 0;
  const write = async (): Promise<void> => {
    const hasRoom = output.write(gathered.join(""));
    gathered = [];
    characters = 0;
    if (!hasRoom) await once(output, "drain", { signal: gone });
  };
  for (const piece of pieces) {
    if (gone.aborted) return;
    gathered.push(piece);
    characters += piece.length;
    if (characters >= writeCharacters) await write();
    if (pauses.isDue) await pauses.take();
  }
  if (characters > 0) await write();
}

/** RFC 9110 §12.5.3, for the one coding that there is. */
export function acceptsGzip(header: string | string[] | undefined): boolean {
  for (const part of String(header ?? "").split(",")) {
    const [coding = "", ...rest] = part.split(";").map((word) => word.trim().toLowerCase());
    if (coding !== "gzip" && coding !== "*") continue;
    const weight = rest.find((word) => word.startsWith("q="));
    return weight === undefined || Number(weight.slice(2)) > 0;
  }
  return false;
}
