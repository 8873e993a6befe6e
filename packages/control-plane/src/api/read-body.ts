// The body of a request, as far as the API takes it.
import type { IncomingMessage } from "node:http";
import { maxApplyBodyBytes } from "@tulle/config/api";
import { ApiFailure } from "./api-failure.ts";

export async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxApplyBodyBytes) throw new ApiFailure(413, `the body is larger than ${maxApplyBodyBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
