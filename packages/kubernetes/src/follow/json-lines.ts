// JSON values, one a line, as a watch sends them.
import type { Readable } from "node:stream";

/** An object is as large as etcd takes it, 1.5 MiB, and a little more as text. */
const mostLineBytes = 16 * 1024 * 1024;

const lineFeed = 0x0a;

/** A line that is cut off at the end is no value: it is left out. Rejects for a line that is no JSON. */
export async function* jsonLines(stream: Readable): AsyncGenerator {
  let parts: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    let from = 0;
    for (let at = chunk.indexOf(lineFeed); at !== -1; at = chunk.indexOf(lineFeed, from)) {
      parts.push(chunk.subarray(from, at));
      const line = Buffer.concat(parts).toString("utf8").trim();
      parts = [];
      bytes = 0;
      from = at + 1;
      if (line !== "") yield JSON.parse(line);
    }
    parts.push(chunk.subarray(from));
    bytes += chunk.length - from;
    if (bytes > mostLineBytes) throw new Error(`a line of more than ${mostLineBytes} bytes`);
  }
}
