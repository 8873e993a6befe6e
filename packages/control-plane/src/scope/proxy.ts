// A connected proxy as the control plane knows it: Istio's node id taken apart and its metadata typed. Nothing of it is
// trusted further than that: a node says who it wants to be.
import { isIP } from "node:net";
import type { Node } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type GatewayTopology, readProxyConfig } from "@tulle/config";

export type ProxyType = "sidecar" | "router";
export type InterceptionMode = "NONE" | "REDIRECT" | "TPROXY";

export interface PodPort {
  readonly name: string;
  readonly containerPort: number;
}

export interface Proxy {
  readonly nodeId: string;
  readonly type: ProxyType;
  /** The pod's address, where the proxy listens. */
  readonly address: string;
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly clusterId: string;
  /** Version of the proxy's own software, for the status listing. */
  readonly version: string;
  /** Tulle's own proxy, which has not every logger and tracer of Envoy's. */
  readonly isTulle?: true;
  readonly interceptionMode: InterceptionMode;
  /** Where it is (node metadata NETWORK); missing where it does not say, and its labels are asked. */
  readonly network?: string;
  /** `region/zone/subzone` of its node, as the control plane knows it. Never said by the node itself. */
  readonly locality?: string;
  /** All addresses of the pod (node metadata INSTANCE_IPS); missing = the one of the id. */
  readonly instanceIps?: readonly string[];
  /** Where the application listens (node metadata APP_ADDRESS, ours; Istio's NONE mode knows loopback only). */
  readonly appAddress: string;
  readonly podPorts: readonly PodPort[];
  /** Of a machine: where it serves a Service's port of that name, as its WorkloadEntry says. Never said by the node. */
  readonly portsByName?: Readonly<Record<string, number>>;
  /** As the pod's annotation says, in the place of what the mesh says; missing when it says nothing. */
  readonly gatewayTopology?: GatewayTopology;
  /**
   * It came in the clear: it has no certificate to show, and nobody beside it who would serve one. Never said by the
   * node itself.
   */
  readonly withoutCertificate?: true;
}

export type ParsedNode = { readonly proxy: Proxy } | { readonly problem: string };

/** `<type>~<address>~<pod>.<namespace>~<domain>` of the longest names that Kubernetes takes has 850. */
const maxNodeIdCharacters = 1024;

/** Reads a node whose id is `sidecar|router ~ address ~ pod.namespace ~ domain` (Istio: pkg/model/proxy.go). */
export function parseNode(node: Node): ParsedNode {
  if (node.id.length > maxNodeIdCharacters)
    return { problem: `the node id has ${node.id.length} characters, the limit is ${maxNodeIdCharacters}` };
  const parts = node.id.split("~");
  const [type = "", address = "", podAndNamespace = ""] = parts;
  if (parts.length !== 4) return { problem: `node id "${node.id}" is not <type>~<address>~<pod>.<namespace>~<domain>` };
  if (type !== "sidecar" && type !== "router") return { problem: `node type "${type}" is not known` };
  const metadata: JsonObject = node.metadata ?? {};
  const dot = podAndNamespace.lastIndexOf(".");
  const namespace = text(metadata["NAMESPACE"]) || podAndNamespace.slice(dot + 1);
  if (dot <= 0 || namespace === "") return { problem: `node id "${node.id}" names no pod and namespace` };
  if (address === "") return { problem: `node id "${node.id}" has no address` };
  return {
    proxy: {
      nodeId: node.id,
      type,
      address,
      name: podAndNamespace.slice(0, dot),
      namespace,
      labels: stringMap(metadata["LABELS"]),
      clusterId: text(metadata["CLUSTER_ID"]) || node.cluster,
      version: proxyVersion(node, metadata),
      ...(node.userAgentName === "tulle" ? { isTulle: true } : {}),
      interceptionMode: interceptionMode(text(metadata["INTERCEPTION_MODE"])),
      ...(text(metadata["NETWORK"]) === "" ? {} : { network: text(metadata["NETWORK"]) }),
      ...instanceIps(text(metadata["INSTANCE_IPS"])),
      appAddress: text(metadata["APP_ADDRESS"]) || "127.0.0.1",
      podPorts: objects(metadata["POD_PORTS"]).flatMap(podPort),
      ...ownTopology(stringMap(metadata["ANNOTATIONS"])),
    },
  };
}

/** As Istio's agents send them, with commas between. */
function instanceIps(list: string): Pick<Proxy, "instanceIps"> {
  const addresses = list.split(",").filter((each) => isIP(each) !== 0);
  return addresses.length === 0 ? {} : { instanceIps: addresses };
}

/** Its problems are told by whoever starts the proxy. */
function ownTopology(annotations: Readonly<Record<string, string>>): Pick<Proxy, "gatewayTopology"> {
  const { gatewayTopology } = readProxyConfig(annotations);
  return gatewayTopology === undefined ? {} : { gatewayTopology };
}

function interceptionMode(mode: string): InterceptionMode {
  return mode === "NONE" || mode === "TPROXY" ? mode : "REDIRECT";
}

function proxyVersion(node: Node, metadata: JsonObject): string {
  const mesh = text(metadata["TULLE_VERSION"]) || text(metadata["ISTIO_VERSION"]);
  if (mesh !== "") return mesh;
  if (node.userAgentVersionType.case === "userAgentVersion") return node.userAgentVersionType.value;
  if (node.userAgentVersionType.case !== "userAgentBuildVersion") return "";
  const version = node.userAgentVersionType.value.version;
  return version === undefined ? "" : `${version.majorNumber}.${version.minorNumber}.${version.patch}`;
}

function text(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}

function stringMap(value: JsonValue | undefined): Readonly<Record<string, string>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
  return Object.fromEntries(Object.entries(value).filter((entry): entry is [string, string] => isText(entry[1])));
}

function isText(value: JsonValue | undefined): value is string {
  return typeof value === "string";
}

/** A list of objects, or the same as JSON text, which is how Istio's agents send POD_PORTS. */
function objects(value: JsonValue | undefined): JsonObject[] {
  let list = value;
  if (typeof value === "string") {
    try {
      list = JSON.parse(value) as JsonValue;
    } catch {
      return [];
    }
  }
  if (!Array.isArray(list)) return [];
  return list.filter((item): item is JsonObject => typeof item === "object" && item !== null && !Array.isArray(item));
}

function podPort(value: JsonObject): PodPort[] {
  const containerPort = port(value["containerPort"]);
  return containerPort === undefined ? [] : [{ name: text(value["name"]), containerPort }];
}

function port(value: JsonValue | undefined): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value > 0 && value < 65_536 ? value : undefined;
}
