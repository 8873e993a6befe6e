// A server of xDS and SDS that no library wrote: HTTP/2 of Node, in the clear or with TLS, which notes who came with
// what. It answers each first request of a type with the resources that the test gave it, and can be given more to
// send.
import http2 from "node:http2";
import type net from "node:net";
import type { TLSSocket } from "node:tls";
import { type Any, AnySchema, anyPack } from "@bufbuild/protobuf/wkt";
import { create, type DescMessage, fromBinary, toBinary } from "@bufbuild/protobuf";
import { ClusterSchema } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import {
  type DiscoveryRequest,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
  ResourceSchema,
} from "@tulle/xds/envoy/service/discovery/v3/discovery_pb";
import { messageFromJson } from "@tulle/xds/json";
import { MessageReader, framed } from "../upstream/grpc-framing.ts";

export const typeUrls = {
  clusters: "type.googleapis.com/envoy.config.cluster.v3.Cluster",
  endpoints: "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
  listeners: "type.googleapis.com/envoy.config.listener.v3.Listener",
  routes: "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
  secrets: "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
} as const;

export interface XdsStream {
  readonly headers: http2.IncomingHttpHeaders;
  /** Of the client's certificate; empty where it showed none. */
  readonly clientNames: string;
  readonly serverName: string;
  readonly requests: DiscoveryRequest[];
  /** Returns the nonce. */
  send(typeUrl: string, versionInfo: string, resources: readonly Any[]): string;
  end(): void;
}

export interface XdsStage {
  readonly port: number;
  readonly streams: XdsStream[];
  stop(): Promise<void>;
}

export interface XdsStageOptions {
  /** Undefined = in the clear. */
  readonly tls?: http2.SecureServerOptions;
  readonly onRequest?: (request: DiscoveryRequest, stream: XdsStream) => void;
}

export async function startXdsStage(options: XdsStageOptions = {}): Promise<XdsStage> {
  const server = options.tls === undefined ? http2.createServer() : http2.createSecureServer(options.tls);
  const streams: XdsStream[] = [];
  const sockets = new Set<net.Socket>();
  server.on("connection", (socket: net.Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("session", (session) => session.on("error", () => undefined));
  server.on("stream", (call: http2.ServerHttp2Stream, headers) => {
    const stream = xdsStream(call, headers);
    streams.push(stream);
    const reader = new MessageReader(1024 * 1024, (bytes) => {
      const request = fromBinary(DiscoveryRequestSchema, bytes);
      stream.requests.push(request);
      options.onRequest?.(request, stream);
    });
    call.on("data", (chunk: Buffer) => void reader.take(chunk));
    call.on("error", () => undefined);
    call.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    call.on("wantTrailers", () => call.sendTrailers({ "grpc-status": "0" }));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    port: (server.address() as net.AddressInfo).port,
    streams,
    async stop() {
      // Those that never got as far as a session, too.
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
    },
  };
}

function xdsStream(call: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders): XdsStream {
  const socket = call.session?.socket as TLSSocket | undefined;
  let sent = 0;
  return {
    headers,
    clientNames: socket?.encrypted === true ? (socket.getPeerX509Certificate()?.subjectAltName ?? "") : "",
    serverName: socket?.encrypted === true ? socket.servername || "" : "",
    requests: [],
    send(typeUrl, versionInfo, resources) {
      const nonce = `n${(sent += 1)}`;
      const response = {
        typeUrl,
        versionInfo,
        nonce,
        resources: [...resources],
        controlPlane: { identifier: "stage" },
      };
      if (!call.destroyed)
        call.write(framed(toBinary(DiscoveryResponseSchema, create(DiscoveryResponseSchema, response))));
      return nonce;
    },
    end: () => call.end(),
  };
}

export function packed(schema: DescMessage, json: object): Any {
  const result = messageFromJson(schema, json);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return anyPack(schema, result.message);
}

/** A cluster without hosts. */
export function emptyCluster(name: string, more: object = {}): Any {
  return packed(ClusterSchema, { name, type: "STATIC", connect_timeout: "1s", ...more });
}

/** A resource with a time to live; without a resource a heartbeat. */
export function livingFor(seconds: number, name: string, resource?: Any): Any {
  const ttl = { seconds: BigInt(Math.floor(seconds)), nanos: Math.round((seconds % 1) * 1e9) };
  return anyPack(ResourceSchema, create(ResourceSchema, { name, ttl, ...(resource && { resource }) }));
}

/** Bytes that are no message, behind a name that can be read. */
export function brokenResource(typeUrl: string, name: string): Any {
  const text = Buffer.from(name);
  return create(AnySchema, {
    typeUrl,
    value: Buffer.concat([Buffer.from([0x0a, text.length]), text, Buffer.from([0xff, 0xff])]),
  });
}
