// What proxies are loaded with: a kind of request, its answer, and how many are under way at a time.
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { type H2load, runH2load } from "../measure/run-h2load.ts";
import { type LoadResult, runWrk } from "../measure/run-wrk.ts";

export type Protocol = "HTTP/1.1" | "HTTP/2";

export interface Work {
  /** One unit of it, as tables call it. */
  readonly name: string;
  /** Client, proxies and back end speak the same version of HTTP. */
  readonly protocol: Protocol;
  /** The answer ends with trailers that say `grpc-status: 0`; bodies are messages behind five bytes of their length. */
  readonly isGrpc: boolean;
  readonly connections: number;
  /** Requests at a time on each. */
  readonly streams: number;
  /** Of the request's body; 0 = a GET without one. */
  readonly requestBytes: number;
  /** The answer's body comes in so many DATA frames of so many bytes. */
  readonly answerFrames: number;
  readonly answerFrameBytes: number;
  /** Of all connections together; undefined = as many as the proxy can take. */
  readonly requestsPerSecond?: number;
}

/** With this gRPC counts the bytes of a message. */
export const grpcPrefixBytes = 5;
const messageBytes = 100;

/** 64 requests at a time; an answer of 1 KB. */
const small = { isGrpc: false, requestBytes: 0, answerFrames: 1, answerFrameBytes: 1024 } as const;

export const http1Request: Work = { ...small, name: "a request", protocol: "HTTP/1.1", connections: 64, streams: 1 };
export const http2Request: Work = { ...http1Request, protocol: "HTTP/2", connections: 8, streams: 8 };
export const grpcCall: Work = {
  ...http2Request,
  name: "a call",
  isGrpc: true,
  requestBytes: grpcPrefixBytes + messageBytes,
  answerFrameBytes: grpcPrefixBytes + messageBytes,
};

/** Every route table of the bench leads it to the back end. */
export const requestPath = "/api/catalog";

export function answerBytes({ answerFrames, answerFrameBytes }: Work): number {
  return answerFrames * answerFrameBytes;
}

/** Of a gRPC call it is one message. */
export function requestBody({ requestBytes, isGrpc }: Work): Buffer {
  const body = Buffer.alloc(requestBytes, isGrpc ? 0 : "x");
  if (isGrpc) body.writeUInt32BE(requestBytes - grpcPrefixBytes, 1);
  return body;
}

/** `name: value`, beside what the caller wants. */
export function requestHeaders({ isGrpc }: Work): readonly string[] {
  return isGrpc ? ["content-type: application/grpc", "te: trailers"] : [];
}

export interface WorkLoad extends Pick<H2load, "seconds" | "folder" | "core"> {
  readonly origin: string;
  /** `name: value`; over HTTP/2 `:authority` in the place of `Host`. */
  readonly headers?: readonly string[];
}

/** @throws when any answer is not the expected one */
export async function runLoad(work: Work, { origin, headers = [], ...rest }: WorkLoad): Promise<LoadResult> {
  const load = { ...rest, url: `${origin}${requestPath}`, headers: [...headers, ...requestHeaders(work)] };
  const { connections, streams, requestsPerSecond, protocol } = work;
  if (protocol === "HTTP/1.1" && requestsPerSecond === undefined) return runWrk({ ...load, connections });
  const bodyFile = work.requestBytes === 0 ? undefined : path.join(rest.folder, "request-body");
  if (bodyFile !== undefined) await writeFile(bodyFile, requestBody(work));
  const isHttp1 = protocol === "HTTP/1.1";
  return runH2load({
    ...load,
    isHttp1,
    requestsPerSecond,
    connections,
    streams,
    bodyFile,
    answerBytes: answerBytes(work),
  });
}
