/**
 * MeshNetworks: which addresses belong to which network, and where its gateways are, as Istio has it: YAML under the
 * key `meshNetworks` of the ConfigMap that holds the mesh's configuration (mesh/v1alpha1, network.proto).
 */
import { isIP } from "node:net";
import { parseDocuments } from "../documents/parse-documents.ts";
import { check, isMapping, type Problem } from "../schema/check.ts";
import { type Format, hostName, quote } from "../schema/formats.ts";
import { splitIpBlock } from "../schema/ip-block.ts";
import { type Infer, integer, list, map, notYet, object, optional, required, string } from "../schema/schema.ts";
import { isMeshConfig, meshConfigNames } from "./mesh-config.ts";
import { rootNamespaces } from "../rules/policy-scope.ts";

export const meshNetworksKey = "meshNetworks";

const range: Format = {
  name: "range",
  description: "a range of addresses, such as 10.1.0.0/16",
  check: (value) => (splitIpBlock(value) === undefined ? `${quote(value)} is no range of addresses` : undefined),
  jsonSchema: { maxLength: 64 },
};

const gatewayAddress: Format = {
  name: "address",
  description: "an IP address",
  check: (value) => (isIP(value) > 0 || hostName.check(value) === undefined ? undefined : `${quote(value)} is none`),
  warn: (value) =>
    isIP(value) > 0 ? undefined : `${quote(value)} is a name, which is not looked up yet: nobody goes that way`,
  jsonSchema: { maxLength: 255 },
};

const networkEndpoints = object(
  {
    fromCidr: optional(string(range), "Addresses of the network."),
    fromRegistry: notYet(string(), "Cluster whose endpoints are of the network."),
  },
  { exactlyOne: [["fromCidr", "fromRegistry"]] },
);

const networkGateway = object(
  {
    address: optional(string(gatewayAddress), "Address of the gateway."),
    registryServiceName: optional(string(hostName), "Host of the gateway's Service, by its external addresses."),
    port: required(integer({ minimum: 1, maximum: 65_535 }), "Port of its server with `mode: AUTO_PASSTHROUGH`."),
    locality: notYet(string(), "Where it runs."),
  },
  { exactlyOne: [["address", "registryServiceName"]] },
);

const meshNetworksSchema = object({
  networks: optional(
    map(
      object({
        endpoints: optional(list(networkEndpoints), "What is in the network besides what says so itself."),
        gateways: optional(list(networkGateway), "How others come in."),
      }),
    ),
    "Networks by their names.",
  ),
});

export type MeshNetworksConfig = Infer<typeof meshNetworksSchema>;

/** The configuration is missing after an error; paths are those within the text. */
export function readMeshNetworks(text: string): {
  readonly config?: MeshNetworksConfig;
  readonly problems: readonly Problem[];
} {
  const { documents, findings } = parseDocuments(text, meshNetworksKey);
  const value = documents[0]?.value ?? {};
  if (findings.some(({ severity }) => severity === "error") || documents.length > 1 || !isMapping(value)) {
    const message = "is not YAML of fields and values";
    return { problems: [{ code: "IST0106", severity: "error", path: [], message }] };
  }
  const checked = check(meshNetworksSchema.node, value, { unknownField: "warning" });
  const isBad = checked.problems.some(({ severity }) => severity === "error");
  return isBad
    ? { problems: checked.problems }
    : { config: checked.value as MeshNetworksConfig, problems: checked.problems };
}

interface ConfigMapLike {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly data?: Readonly<Record<string, string>>;
}

/** Of the first ConfigMap that has the key, in the order of the mesh's configuration; nothing when there is none. */
export function meshNetworksOf(configMaps: readonly ConfigMapLike[]): MeshNetworksConfig {
  const rank = ({ metadata }: ConfigMapLike): number =>
    rootNamespaces.indexOf(metadata.namespace) * meshConfigNames.length + meshConfigNames.indexOf(metadata.name);
  const [first] = configMaps
    .filter((each) => isMeshConfig(each) && each.data?.[meshNetworksKey] !== undefined)
    .sort((a, b) => rank(a) - rank(b));
  const text = first?.data?.[meshNetworksKey];
  return (text === undefined ? undefined : readMeshNetworks(text).config) ?? {};
}
