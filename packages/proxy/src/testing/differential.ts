// Compares the server codec with llhttp on one message. The rule that keeps smuggling out: whatever we take, llhttp
// must take too, and read the same in it.
import { llhttpVerdict } from "./llhttp-oracle.ts";
import { readRequests, type SeenRequest } from "./codec-probe.ts";

/** Fields that the codec takes for itself or changes; what they do shows in bodies and in the number of messages. */
const ownFields = new Set(
  "host connection keep-alive proxy-connection transfer-encoding te upgrade http2-settings expect content-length".split(
    " ",
  ),
);

/** A tab behind a value is no part of it (RFC 9112 §5), but llhttp refuses it behind this one. */
const tabBehindCoding = /transfer-encoding:[\t ]*chunked *\t[\t ]*\r\n/i;
/** Trailers say nothing about a connection (RFC 9110 §6.5.1), but llhttp takes their word. */
const connectionTrailer = /\r\n0+[^\r\n]*\r\n(?:[^\r\n]+\r\n)*connection:/i;

/** What differs in a way that matters; undefined when all is well. */
export function difference(text: string, chunks: readonly Buffer[]): string | undefined {
  if (tabBehindCoding.test(text) || connectionTrailer.test(text)) return undefined;
  const ours = readRequests(chunks);
  const oracle = llhttpVerdict(Buffer.from(text, "latin1"));
  if (ours.requests.length > oracle.complete.length) {
    return `took ${ours.requests.length} where llhttp took ${oracle.complete.length} (${oracle.error})`;
  }
  for (const [index, request] of ours.requests.entries()) {
    const other = oracle.complete[index]!;
    if (request.method !== other.method) return `method ${request.method} / ${other.method}`;
    if (request.body !== other.body) return `body ${JSON.stringify(request.body)} / ${JSON.stringify(other.body)}`;
    const fault = headerDifference(request, other.headers);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function headerDifference(request: SeenRequest, oracleHeaders: readonly string[]): string | undefined {
  const theirs: string[] = [];
  const nominated = nominatedFields(oracleHeaders);
  for (let index = 0; index < oracleHeaders.length; index += 2) {
    const name = oracleHeaders[index]!.toLowerCase();
    if (!ownFields.has(name) && !nominated.has(name)) theirs.push(name, oracleHeaders[index + 1]!.trim());
  }
  const mine: string[] = [];
  for (let index = 0; index < request.headers.length; index += 2) {
    if (!ownFields.has(request.headers[index]!)) mine.push(request.headers[index]!, request.headers[index + 1]!.trim());
  }
  const [a, b] = [JSON.stringify(mine), JSON.stringify(theirs)];
  return a === b ? undefined : `headers ${a} / ${b}`;
}

/** Those that the codec takes off because Connection names them. */
function nominatedFields(oracleHeaders: readonly string[]): ReadonlySet<string> {
  const names: string[] = [];
  for (let index = 0; index < oracleHeaders.length; index += 2) {
    if (oracleHeaders[index]!.toLowerCase() === "connection") names.push(...oracleHeaders[index + 1]!.split(","));
  }
  return new Set(names.map((name) => name.trim().toLowerCase()));
}
