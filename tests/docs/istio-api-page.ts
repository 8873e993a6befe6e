// The tables of docs/istio-api.md, made of the schemas: what each field of Istio's API does today.
import { type FieldNode, kindDefinitions, type Node, unreadKinds } from "@tulle/config";

const istioKinds = [
  "VirtualService",
  "DestinationRule",
  "Gateway",
  "ServiceEntry",
  "WorkloadEntry",
  "WorkloadGroup",
  "AuthorizationPolicy",
  "RequestAuthentication",
  "PeerAuthentication",
  "Telemetry",
] as const;

export function istioApiTables(): string {
  return [...istioKinds.map(kindTable), unreadTable()].join("\n\n");
}

function kindTable(kind: (typeof istioKinds)[number]): string {
  const { schema } = kindDefinitions[kind];
  const rows = rowsBelow(specOf(schema.node), "", new Map());
  return `## ${kind}\n\n| field | takes effect | |\n|---|---|---|\n${rows.join("\n")}`;
}

function specOf(node: Node): Node {
  if (node.type !== "object" || node.fields["spec"] === undefined) throw new Error("a kind without spec");
  return node.fields["spec"].node;
}

/** `seen` knows where an object that several fields have in common was described. */
function rowsBelow(node: Node, at: string, seen: Map<Node, string>): readonly string[] {
  if (node.type === "list") return rowsBelow(node.items, `${at}[]`, seen);
  if (node.type === "map") return rowsBelow(node.values, `${at}{}`, seen);
  if (node.type !== "object") return [];
  seen.set(node, at);
  return Object.entries(node.fields).flatMap(([name, field]) => {
    const path = at === "" ? name : `${at}.${name}`;
    const known = seen.get(innermost(field.node));
    const like = known === undefined ? "" : ` Its fields are those of \`${known}\`.`;
    const row = `| \`${path}\` | ${effectOf(field)} | ${cell(field.description)}${like} |`;
    const isOpened = field.status === "implemented" && known === undefined;
    return isOpened ? [row, ...rowsBelow(field.node, path, seen)] : [row];
  });
}

function innermost(node: Node): Node {
  if (node.type === "list") return innermost(node.items);
  return node.type === "map" ? innermost(node.values) : node;
}

function effectOf(field: FieldNode): string {
  switch (field.status) {
    case "implemented": {
      const node = innermost(field.node);
      const without = node.type === "enum" && node.notImplemented.length > 0 ? node.notImplemented : [];
      return without.length === 0 ? "yes" : `yes, but ${without.join(", ")}`;
    }
    case "notImplemented":
      return field.effect === "has no effect" ? "no" : `no: ${field.effect}`;
    case "narrows":
      return "**refused**";
    default:
      return field.status satisfies never;
  }
}

function unreadTable(): string {
  const rows = Object.entries(unreadKinds).map(([kind, { description, otherwise }]) => {
    return `| ${kind} | ${otherwise === undefined ? "no" : "**refused**"} | ${cell(description)} |`;
  });
  return `## Other kinds\n\n| kind | takes effect | |\n|---|---|---|\n${rows.join("\n")}`;
}

function cell(text: string): string {
  return text.replaceAll("|", String.raw`\|`);
}
