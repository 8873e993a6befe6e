// xDS spoken by hand, for tests of what no client does.
import http2 from "node:http2";
import type { TestContext } from "node:test";
import { type MessageInitShape, create, toBinary } from "@bufbuild/protobuf";
import { DiscoveryRequestSchema } from "@tulle/xds/envoy/service/discovery/v3/discovery_pb";
import type { RunningControlPlane } from "../run-control-plane.ts";

export const adsPath = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";

/** A connection that speaks gRPC by hand, so that it can do what no client does. */
export function connectRaw(
  context: TestContext,
  { xdsAddress }: Pick<RunningControlPlane, "xdsAddress">,
): http2.ClientHttp2Session {
  const session = http2.connect(`http://127.0.0.1:${xdsAddress!.port}`);
  session.on("error", () => undefined);
  context.after(() => session.destroy());
  return session;
}

export interface RawStream {
  readonly stream: http2.ClientHttp2Stream;
  /** `<grpc-status> <grpc-message>`, once it has ended. */
  readonly outcome: () => string | undefined;
  /** The server has taken it. */
  readonly stands: () => boolean;
}

export function openStream(session: http2.ClientHttp2Session, headers: http2.OutgoingHttpHeaders = {}): RawStream {
  const stream = session.request({
    ":method": "POST",
    ":path": adsPath,
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  let outcome: string | undefined;
  let stands = false;
  const tell = (fields: http2.IncomingHttpHeaders): void => {
    const status = fields["grpc-status"];
    stands = status === undefined;
    if (status === undefined) return;
    outcome = `${String(status)} ${decodeURIComponent(String(fields["grpc-message"] ?? ""))}`;
    // As every client does that has its status.
    stream.end();
  };
  stream.on("response", tell).on("trailers", tell);
  stream.on("error", () => undefined).resume();
  return { stream, outcome: () => outcome, stands: () => stands };
}

/** A request as bytes of a stream. */
export function framed(request: MessageInitShape<typeof DiscoveryRequestSchema>): Buffer {
  return prefixed(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, request)));
}

export function prefixed(message: Uint8Array, flag = 0): Buffer {
  const prefix = Buffer.from([flag, 0, 0, 0, 0]);
  prefix.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([prefix, message]);
}
