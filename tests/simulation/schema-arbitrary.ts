// Random resources made from the schemas themselves: a new field of a kind is tried from the day that it is described.
import * as fc from "fast-check";
import { type Kind, kindDefinitions } from "@tulle/config";

type Node = (typeof kindDefinitions)[Kind]["schema"]["node"];

/** Kinds that a running mesh is edited by. */
export const editedKinds = [
  "Service",
  "Gateway",
  "VirtualService",
  "DestinationRule",
  "AuthorizationPolicy",
  "RequestAuthentication",
  "PeerAuthentication",
] as const satisfies readonly Kind[];

/** Values that fit a format, and mean something in the small mesh that is edited. */
const byFormat: Readonly<Record<string, readonly string[]>> = {
  duration: ["1ms", "2s", "1.5s", "1h"],
  "duration or zero": ["0s", "2s"],
  "regular expression": ["a+", ".*", "[^/]{1,20}", "\\d{2,}"],
  "retry conditions": ["5xx", "503,gateway-error", "cancelled,599"],
  "label value": ["v1", "v2", "web", "catalog", ""],
  "label key": ["app", "version"],
  "header name": ["x-a", "x-b", "end-user"],
  "cluster address": ["None"],
  "exported namespace": [".", "*", "shop", "tulle-system"],
  "DNS label": ["shop", "http-a", "web"],
  text: ["a", "/api", "http", "x-a", "shop"],
};

/** Where the name of the field says more than its format. */
const byField: Readonly<Record<string, readonly string[]>> = {
  host: ["catalog", "catalog.shop", "web.shop.svc.cluster.local", "a.example.com"],
  hosts: ["catalog", "*", "a.example.com", "*.example.com", "web"],
  gateways: ["mesh", "a", "shop/b"],
  subset: ["v1", "v2"],
  issuer: ["https://issuer.example", "https://other.example"],
  key: ["source.ip", "request.headers[x-a]", "source.namespace", "destination.port"],
  values: ["80", "192.0.2.0/24", "a*", "shop"],
  ipBlocks: ["192.0.2.0/24", "::1"],
  notIpBlocks: ["192.0.2.7"],
  remoteIpBlocks: ["192.0.2.7"],
  notRemoteIpBlocks: ["192.0.2.8"],
  ports: ["80", "8080"],
  notPorts: ["8443"],
  methods: ["GET", "POST"],
  paths: ["/api/*", "/a"],
  jwks: ['{"keys":[]}'],
  jwksUri: ["http://127.0.0.1:9/keys"],
  portLevelMtls: ["80", "8080"],
  name: ["a", "b", "http-a", "http-b", "v1", "v2"],
  protocol: ["HTTP"],
  credentialName: ["shop-cert"],
};

/** Files and certificates that no machine has, and what needs a provider. */
const leftOut = new Set([
  "caCertificates",
  "caCrl",
  "clientCertificate",
  "privateKey",
  "provider",
  "serverCertificate",
  "verifyCertificateHash",
  "verifyCertificateSpki",
]);

const ports = [80, 8080, 8443, 3000];
const maxItems = 3;
const maxDepth = 9;

/** A value of the node, without fields that are not implemented; rules between fields may still refuse it. */
function arbitraryOf(node: Node, field: string, depth: number): fc.Arbitrary<unknown> {
  switch (node.type) {
    case "string": {
      const named = byField[field] ?? byFormat[node.format?.name ?? ""] ?? ["a", "b", "shop"];
      const fitting = named.filter((value) => node.format?.check(value) === undefined);
      return fitting.length === 0 ? fc.constantFrom(...named) : fc.constantFrom(...fitting);
    }
    case "enum":
      return fc.constantFrom(...node.values.filter((value) => !node.notImplemented.includes(value)));
    case "integer":
    case "number": {
      const { minimum = 0, maximum = 1000 } = node;
      const chosen = [...ports, minimum, 1, 5, 100, maximum].filter((value) => value >= minimum && value <= maximum);
      return fc.constantFrom(...chosen);
    }
    case "boolean":
      return fc.boolean();
    case "intOrString":
      return fc.constantFrom(3000, 8080, "http");
    case "json":
      return fc.constantFrom("%RESPONSE_CODE%", { a: ["%PROTOCOL%"] });
    case "list":
      return fc.array(arbitraryOf(node.items, field, depth + 1), {
        minLength: Math.min(node.minItems, maxItems),
        maxLength: maxItems,
      });
    case "map":
      return fc.dictionary(
        fc.constantFrom(...(byField[field] ?? byFormat[node.keyFormat?.name ?? ""] ?? ["app", "version"])),
        arbitraryOf(node.values, field, depth + 1),
        { maxKeys: 2 },
      );
    case "object":
      return objectOf(node, depth);
  }
}

function objectOf(node: Extract<Node, { type: "object" }>, depth: number): fc.Arbitrary<Record<string, unknown>> {
  const usable = Object.entries(node.fields).filter(
    ([name, each]) =>
      each.required ||
      (!leftOut.has(name) && each.status === "implemented" && each.deprecated === undefined && depth < maxDepth),
  );
  const model = Object.fromEntries(usable.map(([name, each]) => [name, arbitraryOf(each.node, name, depth + 1)]));
  const required = usable.filter(([, each]) => each.required).map(([name]) => name);
  const whole = fc.record(model, { requiredKeys: required });
  const groups = [...node.exactlyOne, ...node.atMostOne].map((group) => group.filter((name) => name in model));
  // Of each group that excludes its members, one is kept; of one that needs a member, one is made.
  return groups.reduce<fc.Arbitrary<Record<string, unknown>>>((values, group, index) => {
    if (group.length === 0) return values;
    const isNeeded = index < node.exactlyOne.length;
    return fc.tuple(values, fc.constantFrom(...group)).chain(([value, kept]) => {
      const others = Object.fromEntries(Object.entries(value).filter(([name]) => !group.includes(name)));
      const present = group.some((name) => name in value);
      if (!present && !isNeeded) return fc.constant(others);
      return (model[kept] as fc.Arbitrary<unknown>).map((member) => ({ ...others, [kept]: member }));
    });
  }, whole);
}

export interface Edit {
  readonly type: "apply" | "delete";
  readonly resource: {
    readonly kind: Kind;
    readonly apiVersion: string;
    readonly metadata: { readonly name: string; readonly namespace: string; readonly labels?: Record<string, string> };
  };
}

const editsOf = (kind: (typeof editedKinds)[number]): fc.Arbitrary<Edit> => {
  const { schema, apiVersions } = kindDefinitions[kind];
  const node = schema.node as Extract<Node, { type: "object" }>;
  const { metadata: _metadata, ...fields } = node.fields;
  return fc
    .record({
      type: fc.oneof(
        { weight: 4, arbitrary: fc.constant("apply" as const) },
        { weight: 1, arbitrary: fc.constant("delete" as const) },
      ),
      name: fc.constantFrom("a", "b", kind === "Service" ? "catalog" : "c"),
      namespace: fc.constantFrom("shop", "shop", "tulle-system"),
      apiVersion: fc.constantFrom(...apiVersions),
      content: objectOf({ ...node, fields }, 0),
    })
    .map(({ type, name, namespace, apiVersion, content }) => ({
      type,
      resource: { apiVersion, kind, metadata: { name, namespace }, ...content },
    }));
};

export const randomEdit: fc.Arbitrary<Edit> = fc.oneof(...editedKinds.map(editsOf));
