// The mesh's kinds as a cluster's own (apiextensions.k8s.io/v1, CustomResourceDefinition), made of the schemas that
// check manifests everywhere else. Every version that Istio serves a kind in is served; all of them hold the same.
import { type Kind, kindDefinitions, kinds, toJsonSchema, unreadKinds } from "@tulle/config";

type JsonSchema = Readonly<Record<string, unknown>>;

interface PrinterColumn {
  readonly name: string;
  readonly type: "string" | "integer" | "date";
  readonly description: string;
  readonly jsonPath: string;
}

export interface CustomResourceDefinition {
  readonly apiVersion: "apiextensions.k8s.io/v1";
  readonly kind: "CustomResourceDefinition";
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly spec: object;
}

/** Of Tulle's groups, or of Istio's, for clusters in which Istio is not. */
export type KindGroups = "tulle.io" | "istio.io";

const ages: readonly PrinterColumn[] = [
  {
    name: "Age",
    type: "date",
    description: "Since when the object is there.",
    jsonPath: ".metadata.creationTimestamp",
  },
];

/** What `kubectl get` shows, as for Istio's kinds. */
const printed: Readonly<Partial<Record<Kind, readonly PrinterColumn[]>>> = {
  AuthorizationPolicy: [text("Action", "The action of the policy.", ".spec.action")],
  DestinationRule: [text("Host", "The service that the rule is for.", ".spec.host")],
  PeerAuthentication: [text("Mode", "Whether mutual TLS is asked for.", ".spec.mtls.mode")],
  ServiceEntry: [
    text("Hosts", "Hosts of the entry.", ".spec.hosts"),
    text("Location", "Whether they are of the mesh (MESH_EXTERNAL or MESH_INTERNAL).", ".spec.location"),
    text("Resolution", "How their addresses are found.", ".spec.resolution"),
  ],
  VirtualService: [
    text("Gateways", "Gateways that the routes are for.", ".spec.gateways"),
    text("Hosts", "Hosts that the routes are for.", ".spec.hosts"),
  ],
  WorkloadEntry: [text("Address", "The address of the workload.", ".spec.address")],
  Rollout: [text("Phase", "How far the roll-out is.", ".status.phase")],
};

function text(name: string, description: string, jsonPath: string): PrinterColumn {
  return { name, type: "string", description, jsonPath };
}

/** Of all kinds that no Kubernetes has by itself, in their order. */
export function customResourceDefinitions(groups: KindGroups = "tulle.io"): readonly CustomResourceDefinition[] {
  const read = kinds.flatMap((kind) => {
    const { apiVersions, plural, shortNames, scope } = kindDefinitions[kind];
    const names = { kind, plural, shortNames };
    return definitionOf(groups, {
      names,
      apiVersions,
      scope,
      schema: objectSchema(kind),
      columns: printed[kind] ?? [],
    });
  });
  const unread = Object.entries(unreadKinds).flatMap(([kind, { plural, apiVersions, description }]) => {
    const names = { kind, plural, shortNames: [] };
    return definitionOf(groups, {
      names,
      apiVersions,
      scope: "Namespaced",
      schema: unreadSchema(description),
      columns: [],
    });
  });
  return [...read, ...unread];
}

interface DefinedKind {
  readonly names: { readonly kind: string; readonly plural: string; readonly shortNames: readonly string[] };
  readonly apiVersions: readonly string[];
  readonly scope: "Namespaced" | "Cluster";
  readonly schema: JsonSchema;
  readonly columns: readonly PrinterColumn[];
}

function definitionOf(
  groups: KindGroups,
  { names, apiVersions, scope, schema, columns }: DefinedKind,
): readonly CustomResourceDefinition[] {
  const own = apiVersions.map((each) => each.split("/")).filter(([group = ""]) => group.endsWith(`.${groups}`));
  const group = own[0]?.[0];
  if (group === undefined) return [];
  const { kind, plural, shortNames } = names;
  const definition: CustomResourceDefinition = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}`, labels: { "app.kubernetes.io/part-of": "tulle" } },
    spec: {
      group,
      scope,
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        shortNames,
        categories: [groups.replace(".", "-")],
      },
      versions: own.map(([, name], index) => ({
        name,
        served: true,
        // The newest is listed first; what lies in the store is read in all of them.
        storage: index === 0,
        schema: { openAPIV3Schema: schema },
        subresources: { status: {} },
        additionalPrinterColumns: [...columns, ...ages],
      })),
    },
  };
  return [definition];
}

const anything: JsonSchema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

/** Whoever has manifests of it is told by the webhook what becomes of them, and not by their fields. */
function unreadSchema(description: string): JsonSchema {
  return { type: "object", description, properties: { spec: anything, status: anything } };
}

/** What the API server itself knows of every object is left to it; whoever writes the status says what is in it. */
function objectSchema(kind: Kind): JsonSchema {
  const whole = toJsonSchema(kind);
  const {
    apiVersion: _apiVersion,
    kind: _kind,
    metadata: _metadata,
    status: _status,
    ...rest
  } = whole["properties"] as Readonly<Record<string, JsonSchema>>;
  const required = ((whole["required"] ?? []) as readonly string[]).filter((name) => Object.hasOwn(rest, name));
  return {
    ...whole,
    required,
    properties: { ...rest, status: anything },
  };
}
