// Joins handlers of opaque unary calls to gRPC's server. Each call is a stream of one message here, so that what a
// client can hold open, and for how long, is bounded from its first byte on.
import type { ServerDuplexStream } from "@grpc/grpc-js";
import type { Refusal } from "./ads-server-api.ts";
import type { TlsPeer } from "./tls-listener.ts";
import type { UnaryAnswer, UnaryCall } from "./unary-calls.ts";

/** Of one connection at once: a client asks for one thing at a time. */
export const maxUnaryCallsPerConnection = 8;
/** The largest is a certificate request, which has 1 or 2 KB. */
export const maxUnaryRequestBytes = 64 * 1024;
/** Until the whole request is there. */
const requestTimeoutMs = 10_000;

type BytesCall = ServerDuplexStream<Buffer, Buffer>;

export interface UnaryCallsOptions {
  readonly grpc: typeof import("@grpc/grpc-js");
  readonly peerOf: (call: { getPeer(): string }) => TlsPeer;
  readonly fail: (call: BytesCall, code: number, details: string) => void;
  readonly onTurnedAway: ((peer: string, refusal: Refusal) => void) | undefined;
}

export class UnaryCalls {
  readonly #options: UnaryCallsOptions;
  readonly #openByPeer = new Map<string, number>();

  constructor(options: UnaryCallsOptions) {
    this.#options = options;
  }

  take(call: BytesCall, handler: (call: UnaryCall) => Promise<UnaryAnswer>): void {
    const { grpc, fail, onTurnedAway } = this.#options;
    const peer = call.getPeer();
    const turnAway = (refusal: Refusal): void => {
      fail(call, grpc.status[refusal.status], refusal.details);
      onTurnedAway?.(peer, refusal);
    };
    const open = this.#openByPeer.get(peer) ?? 0;
    if (open >= maxUnaryCallsPerConnection) {
      const details = `more than ${maxUnaryCallsPerConnection} calls of one connection at once`;
      turnAway({ status: "RESOURCE_EXHAUSTED", details });
      return;
    }
    this.#openByPeer.set(peer, open + 1);
    const timer = setTimeout(
      () => turnAway({ status: "DEADLINE_EXCEEDED", details: `no request in ${requestTimeoutMs} ms` }),
      requestTimeoutMs,
    );
    let request: Buffer | undefined;
    let isOver = false;
    const over = (): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      const left = this.#openByPeer.get(peer)! - 1;
      if (left > 0) this.#openByPeer.set(peer, left);
      else this.#openByPeer.delete(peer);
    };
    call.on("data", (bytes: Buffer) => {
      if (isOver) return;
      if (request !== undefined) turnAway({ status: "INVALID_ARGUMENT", details: "more than one request" });
      else if (bytes.byteLength > maxUnaryRequestBytes) {
        const details = `the request has ${bytes.byteLength} bytes, the limit is ${maxUnaryRequestBytes}`;
        turnAway({ status: "RESOURCE_EXHAUSTED", details });
      } else request = bytes;
    });
    call.on("end", () => {
      clearTimeout(timer);
      if (isOver) return;
      if (request === undefined) turnAway({ status: "INVALID_ARGUMENT", details: "no request" });
      else this.#answer(call, request, handler, () => isOver);
    });
    call.on("cancelled", over);
    call.on("error", over);
    call.on("close", over);
    call.on("finish", over);
  }

  #answer(
    call: BytesCall,
    requestBytes: Buffer,
    handler: (call: UnaryCall) => Promise<UnaryAnswer>,
    isOver: () => boolean,
  ): void {
    const { grpc, peerOf, fail } = this.#options;
    const { certificates, identity } = peerOf(call);
    const asked: UnaryCall = {
      requestBytes,
      peer: call.getPeer(),
      peerCertificates: certificates,
      peerIdentity: identity,
      metadata: (name) => call.metadata.get(name).filter((value) => typeof value === "string"),
    };
    handler(asked).then(
      (answer) => {
        if (isOver()) return;
        if (!answer.ok) {
          fail(call, grpc.status[answer.status], answer.details);
          return;
        }
        const { buffer, byteOffset, byteLength } = answer.bytes;
        call.write(Buffer.from(buffer, byteOffset, byteLength));
        call.end();
      },
      () => {
        if (!isOver()) fail(call, grpc.status.INTERNAL, "the server failed");
      },
    );
  }
}
