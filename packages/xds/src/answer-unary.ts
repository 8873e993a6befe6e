// Joins a handler of opaque unary calls to gRPC's server.
import type { handleUnaryCall } from "@grpc/grpc-js";
import type { TlsPeer } from "./tls-listener.ts";
import type { UnaryAnswer, UnaryCall } from "./unary-calls.ts";

export function answerUnary(
  grpc: typeof import("@grpc/grpc-js"),
  handler: (call: UnaryCall) => Promise<UnaryAnswer>,
  peerOf: (call: { getPeer(): string }) => TlsPeer,
): handleUnaryCall<Buffer, Buffer> {
  return (call, reply) => {
    const { certificates, identity } = peerOf(call);
    const asked: UnaryCall = {
      requestBytes: call.request,
      peer: call.getPeer(),
      peerCertificates: certificates,
      peerIdentity: identity,
      metadata: (name) => call.metadata.get(name).filter((value) => typeof value === "string"),
    };
    handler(asked).then(
      (answer) => {
        if (answer.ok) {
          const { buffer, byteOffset, byteLength } = answer.bytes;
          reply(null, Buffer.from(buffer, byteOffset, byteLength));
        } else reply({ code: grpc.status[answer.status], details: answer.details });
      },
      () => reply({ code: grpc.status.INTERNAL, details: "the server failed" }),
    );
  };
}
