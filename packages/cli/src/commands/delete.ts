// `tulle delete`: removes resources of a running instance, by name or as a file lists them.
import type { Command } from "commander";
import {
  ApiError,
  defaultNamespace,
  effectiveNamespace,
  type ApiClient,
  type Kind,
  type MeshResource,
  type ResourceKey,
} from "@tulle/config";
import type { Instance } from "@tulle/local/instance";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";
import type { CommandContext, InstanceOption } from "../command/command-module.ts";
import { addExamples, addInstanceOption } from "../command/command-options.ts";
import { connect, withApiFailures } from "../instance/instance-client.ts";
import { renderFindings } from "../printing/print-findings.ts";
import { describeKinds, displayName, inApplyOrder, loadManifests, parseKind } from "../arguments/resource-arguments.ts";

interface DeleteOptions extends InstanceOption {
  readonly filename?: readonly string[];
  readonly namespace?: string;
  readonly ignoreNotFound?: boolean;
}

export function register(command: Command, context: CommandContext): void {
  addInstanceOption(command);
  command
    .argument("[kind]", `kind: ${describeKinds()}`)
    .argument("[names...]", "names of the resources")
    .option("-f, --filename <path...>", 'delete what these files or folders list, "-" for standard input')
    .option("-n, --namespace <namespace>", `namespace of the names (default: ${defaultNamespace})`)
    .option("--ignore-not-found", "count a missing resource as deleted");
  addExamples(command, [
    ["tulle delete virtualservice catalog -n shop", "remove one rule"],
    ["tulle delete -f samples/shop/rules/4-retries.yaml", "remove what a file added"],
  ]);
  command.action(async (kind: string | undefined, names: readonly string[], options: DeleteOptions) => {
    const keys = await keysToDelete(kind, names, options, context);
    const instance = await context.instance(options);
    await deleteKeys(keys, instance, connect(instance), options, context);
  });
}

async function keysToDelete(
  kindName: string | undefined,
  names: readonly string[],
  options: DeleteOptions,
  context: CommandContext,
): Promise<readonly ResourceKey[]> {
  if (options.filename !== undefined) {
    if (kindName !== undefined) {
      throw new CommandFailure("-f and names exclude each other", { exitCode: exitCodes.usage });
    }
    const loaded = await loadManifests(options.filename, context);
    context.stderr(
      renderFindings(
        loaded.findings.filter(({ code }) => code === "TUL0002"),
        context,
      ),
    );
    return inApplyOrder(loaded.resources)
      .toReversed()
      .map(({ kind, metadata }) => ({ kind, namespace: metadata.namespace, name: metadata.name }));
  }
  // kubectl's other spelling: kind/name.
  const [kindPart = "", namePart] = kindName?.split("/") ?? [];
  const wanted = namePart === undefined ? names : [namePart, ...names];
  if (kindName === undefined || wanted.length === 0) {
    throw new CommandFailure("name what to delete: a kind and names, or -f with a file", {
      hint: "For example: tulle delete virtualservice catalog -n shop",
      exitCode: exitCodes.usage,
    });
  }
  const kind = parseKind(kindPart);
  return wanted.map((name) => ({ kind, namespace: effectiveNamespace(kind, options.namespace), name }));
}

async function deleteKeys(
  keys: readonly ResourceKey[],
  instance: Instance,
  client: ApiClient,
  options: DeleteOptions,
  context: CommandContext,
): Promise<void> {
  let left = 0;
  for (const key of keys) {
    const deleted = await withApiFailures(instance, () => deleteOne(client, key));
    const name = displayName(key.kind, key.name);
    if (typeof deleted === "string") {
      left += 1;
      context.stderr(`${deleted}\n`);
    } else if (deleted !== undefined) context.stdout(`${name} deleted\n`);
    else if (options.ignoreNotFound !== true) {
      left += 1;
      const where = key.namespace === "" ? "" : ` in the namespace "${key.namespace}"`;
      const { items } = await withApiFailures(instance, () => client.list(key.kind as Kind));
      const elsewhere = items.find(({ metadata }) => metadata.name === key.name)?.metadata.namespace;
      const hint = elsewhere === undefined ? "" : `; there is one in "${elsewhere}": add -n ${elsewhere}`;
      context.stderr(`${name} not found${where}${hint}\n`);
    }
  }
  if (left > 0) throw new CommandFailure("");
}

/** Why this one stays, as text, is no reason to keep the others. */
async function deleteOne(client: ApiClient, key: ResourceKey): Promise<MeshResource | string | undefined> {
  try {
    return await client.delete(key);
  } catch (error) {
    if (error instanceof ApiError && error.status === 409) return error.message;
    throw error;
  }
}
