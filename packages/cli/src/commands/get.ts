// `tulle get`: shows resources of a running instance, as a table or as data.
import { Option, type Command } from "commander";
import {
  concealSecrets,
  effectiveNamespace,
  kindDefinitions,
  type ApiClient,
  type Kind,
  type MeshResource,
} from "@tulle/config";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";
import type { CommandContext, InstanceOption } from "../command/command-module.ts";
import { addExamples, addInstanceOption } from "../command/command-options.ts";
import { connect, withApiFailures } from "../instance/instance-client.ts";
import { describeKinds, displayName, parseKind } from "../arguments/resource-arguments.ts";
import { resourceTable } from "../printing/resource-table.ts";
import { wrapText } from "../printing/wrap-text.ts";

interface GetOptions extends InstanceOption {
  readonly namespace?: string;
  readonly allNamespaces?: boolean;
  readonly output?: "json" | "yaml" | "wide" | "name";
}

/** In a message. */
const maxNamed = 10;

export function register(command: Command, context: CommandContext): void {
  addInstanceOption(command);
  command
    .argument("<kinds>", `kinds, separated by commas: ${describeKinds()}`)
    .argument("[name]", "only the resource of this name")
    .option("-n, --namespace <namespace>", "namespace (default: default)")
    .option("-A, --all-namespaces", "all namespaces")
    .addOption(new Option("-o, --output <format>", "what to print").choices(["json", "yaml", "wide", "name"]));
  addExamples(command, [
    ["tulle get vs -A", "all VirtualServices"],
    ["tulle get dr catalog -n shop -o yaml", "one DestinationRule, to edit and apply again"],
  ]);
  command.action(async (kindNames: string, name: string | undefined, options: GetOptions) => {
    const kinds = kindNames.split(",").map(parseKind);
    if (name !== undefined && (kinds.length > 1 || options.allNamespaces === true)) {
      throw new CommandFailure("a name goes with one kind and one namespace", { exitCode: exitCodes.usage });
    }
    const instance = await context.instance(options);
    const client = connect(instance);
    await withApiFailures(instance, async () => {
      if (name === undefined) await showKinds(client, kinds, options, context);
      else await showOne(client, kinds[0]!, name, options, context);
    });
  });
}

async function showOne(
  client: ApiClient,
  kind: Kind,
  name: string,
  options: GetOptions,
  context: CommandContext,
): Promise<void> {
  const namespace = effectiveNamespace(kind, options.namespace);
  const resource = await client.get(kind, namespace, name);
  if (resource === undefined) {
    const { items } = await client.list(kind);
    const elsewhere = items.filter(({ metadata }) => metadata.name === name).map(({ metadata }) => metadata.namespace);
    const where = namespace === "" ? "" : ` in the namespace "${namespace}"`;
    const hint =
      elsewhere.length === 0
        ? otherNames(kind, items)
        : `There is one in "${elsewhere.join('", "')}": add -n ${elsewhere[0]}.`;
    throw new CommandFailure(`${displayName(kind, name)} not found${where}`, { hint });
  }
  const shown = concealSecrets(resource);
  await print(shown, [{ kind, items: [shown] }], options, context);
}

/** Where there is none of the name at all. */
function otherNames(kind: Kind, items: readonly MeshResource[]): string {
  if (items.length === 0) return `There are no ${kindDefinitions[kind].plural} in any namespace.`;
  const names = items.map(({ metadata: { name, namespace } }) => (namespace === "" ? name : `${namespace}/${name}`));
  const more = names.length > maxNamed ? ` and ${names.length - maxNamed} more` : "";
  return `There are: ${names.toSorted().slice(0, maxNamed).join(", ")}${more}.`;
}

async function showKinds(
  client: ApiClient,
  kinds: readonly Kind[],
  options: GetOptions,
  context: CommandContext,
): Promise<void> {
  const groups: { readonly kind: Kind; readonly items: readonly MeshResource[] }[] = [];
  for (const kind of kinds) {
    const isNamespaced = kindDefinitions[kind].scope === "Namespaced";
    const namespace = options.allNamespaces === true || !isNamespaced ? undefined : (options.namespace ?? "default");
    const items = (await client.list(kind, namespace)).items.map(concealSecrets).toSorted(byName);
    groups.push({ kind, items });
    if (items.length > 0) continue;
    const elsewhere = namespace === undefined ? [] : (await client.list(kind)).items;
    const where = namespace === undefined ? "" : ` in the namespace "${namespace}"`;
    const [only, ...others] = new Set(elsewhere.map(({ metadata }) => metadata.namespace));
    const way = others.length === 0 ? `-n ${only}, or ` : "";
    const hint = elsewhere.length === 0 ? "" : ` (${elsewhere.length} elsewhere: ${way}-A shows all namespaces)`;
    context.stderr(`${wrapText(`no ${kindDefinitions[kind].plural}${where}${hint}`, context.columns)}\n`);
  }
  const items = groups.flatMap((group) => group.items);
  await print({ apiVersion: "v1", kind: "List", items }, groups, options, context);
}

/** As kubectl orders them: by namespace, then by name. */
function byName({ metadata: one }: MeshResource, { metadata: other }: MeshResource): number {
  if (one.namespace !== other.namespace) return one.namespace < other.namespace ? -1 : 1;
  return one.name < other.name ? -1 : Number(one.name > other.name);
}

async function print(
  data: unknown,
  groups: readonly { readonly kind: Kind; readonly items: readonly MeshResource[] }[],
  options: GetOptions,
  context: CommandContext,
): Promise<void> {
  const { output } = options;
  if (output === "json" || output === "yaml") {
    if (groups.some(({ kind, items }) => kind === "Secret" && items.length > 0)) {
      context.stderr("the values of Secrets are hidden: a terminal and a pipe are no place for them\n");
    }
    await context.printData(withoutEmptyNamespaces(data), output, () => "");
    return;
  }
  const filled = groups.filter(({ items }) => items.length > 0);
  if (output === "name") {
    const names = filled.flatMap(({ kind, items }) => items.map(({ metadata }) => displayName(kind, metadata.name)));
    context.stdout(names.map((name) => `${name}\n`).join(""));
    return;
  }
  const tables = filled.map(({ kind, items }) =>
    resourceTable(kind, items, {
      isWide: output === "wide",
      withNamespace: options.allNamespaces === true,
      columns: context.columns,
    }),
  );
  context.stdout(tables.join("\n"));
}

/** Objects of kinds without namespaces carry an empty one in the API; nobody writes it so. */
function withoutEmptyNamespaces(data: unknown): unknown {
  return JSON.parse(
    JSON.stringify(data, (key, value: unknown) => (key === "namespace" && value === "" ? undefined : value)),
  );
}
