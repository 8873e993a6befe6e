// A request as envoy.service.auth.v3.CheckRequest tells it to authorizers.
import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { AttributeContextSchema } from "@tulle/xds/envoy/service/auth/v3/attribute_context_pb";
import {
  type CheckRequest as CheckMessage,
  CheckRequestSchema,
} from "@tulle/xds/envoy/service/auth/v3/external_auth_pb";
import type { StreamInfo } from "../../../http/stream-info.ts";
import type { CheckedBody, CheckRequest } from "./check-request.ts";

export interface AttributeSettings {
  readonly includesPeerCertificate: boolean;
  readonly includesTlsSession: boolean;
}

type Attributes = MessageInitShape<typeof AttributeContextSchema>;
type Peer = NonNullable<Attributes["source"]>;

/** Tells requests apart that one authorizer is asked about; Envoy's is the stream's number. */
let lastId = 0;

export function attributesOf(check: CheckRequest, settings: AttributeSettings): CheckMessage {
  const { info, headers, contextExtensions, metadata } = check;
  lastId += 1;
  return create(CheckRequestSchema, {
    attributes: {
      source: sourceOf(info, headers, settings),
      destination: {
        address: addressOf(info.downstreamLocalAddress),
        principal: principalOf(info.downstreamTls?.local),
      },
      // Of a connection there is none.
      ...(info.isConnection ? {} : { request: requestOf(check, lastId), routeMetadataContext: {} }),
      contextExtensions: { ...contextExtensions },
      metadataContext: { filterMetadata: metadata as Record<string, JsonObject> },
      ...(settings.includesTlsSession ? { tlsSession: { sni: info.requestedServerName } } : {}),
    },
  });
}

function requestOf({ info, request, headers, body }: CheckRequest, id: number): Attributes["request"] {
  return {
    time: timestampFromMs(Math.floor(info.startTimeMs)),
    http: {
      id: String(id),
      method: request.method,
      headers: Object.fromEntries([...headers].map(([name, value]) => [name, asUtf8(value)])),
      path: asUtf8(request.path),
      host: asUtf8(request.authority),
      scheme: request.scheme,
      size: BigInt(info.bytesReceived),
      protocol: request.protocol,
      ...(body === undefined ? {} : bodyOf(body)),
    },
  };
}

function bodyOf({ bytes, packAsBytes }: CheckedBody): { readonly body?: string; readonly rawBody?: Uint8Array } {
  return packAsBytes ? { rawBody: bytes } : { body: bytes.toString("utf8") };
}

function sourceOf(info: StreamInfo, headers: ReadonlyMap<string, string>, settings: AttributeSettings): Peer {
  const peer = info.downstreamTls?.peer;
  return {
    address: addressOf(info.downstreamRemoteAddress),
    service: headers.get("x-envoy-downstream-service-cluster") ?? "",
    principal: principalOf(peer),
    certificate: settings.includesPeerCertificate ? (peer?.encodedPem ?? "") : "",
  };
}

interface Names {
  readonly uriSans: readonly string[];
  readonly dnsSans: readonly string[];
  readonly subject: string;
}

function principalOf(names: Names | undefined): string {
  return names === undefined ? "" : (names.uriSans[0] ?? names.dnsSans[0] ?? names.subject);
}

/** Of `ip:port`. */
export function addressOf(text: string): Peer["address"] {
  const colon = text.lastIndexOf(":");
  const address = text.slice(0, colon).replace(/^\[(.*)\]$/, "$1");
  const portSpecifier = { case: "portValue", value: Number(text.slice(colon + 1)) } as const;
  return { address: { case: "socketAddress", value: { address, portSpecifier } } };
}

/** Heads are latin1 here and text there. */
function asUtf8(value: string): string {
  return Buffer.from(value, "latin1").toString("utf8").replaceAll("\uFFFD", "!");
}
