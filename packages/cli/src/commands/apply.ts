// `tulle apply -f`: adds or changes resources of a running instance. A bad resource is left out, the others are
// applied.
import type { Command } from "commander";
import path from "node:path";
import { placesOf, type Finding, type MeshResource } from "@tulle/config";
import type { Instance } from "@tulle/local/instance";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";
import type { CommandContext, InstanceOption } from "../command/command-module.ts";
import { addExamples, addInstanceOption } from "../command/command-options.ts";
import { connect, withApiFailures } from "../instance/instance-client.ts";
import { renderFindings } from "../printing/print-findings.ts";
import { displayName, inApplyOrder, loadManifests } from "../arguments/resource-arguments.ts";

interface ApplyOptions extends InstanceOption {
  readonly filename: readonly string[];
}

export function register(command: Command, context: CommandContext): void {
  addInstanceOption(command);
  command.requiredOption(
    "-f, --filename <path...>",
    'files or folders of manifests (YAML or JSON), "-" for standard input',
  );
  addExamples(command, [
    ["tulle apply -f samples/shop/rules/3-dark-launch-v2.yaml", "send requests with a header to another version"],
    ["cat rule.yaml | tulle apply -f -", "read standard input"],
  ]);
  command.addHelpText("after", "\nExit status: 0 applied, 4 a resource was refused (the others are applied).");
  command.action((options: ApplyOptions) => apply(options, context));
}

async function apply(options: ApplyOptions, context: CommandContext): Promise<void> {
  const loaded = await loadManifests(options.filename, context);
  const findings: Finding[] = [...loaded.findings];
  if (loaded.resources.length === 0) {
    context.stderr(renderFindings(findings, context));
    throw new CommandFailure("there is nothing to apply", { exitCode: exitCodes.findings });
  }
  const instance = await context.instance(options);
  const client = connect(instance);
  let refused = 0;
  for (const resource of inApplyOrder(loaded.resources)) {
    const answer = await withApiFailures(instance, () =>
      client.apply(withFolder(resource, instance), placesOf(resource)),
    );
    findings.push(...answer.findings.map((finding) => (answer.outcome === "rejected" ? finding : inForce(finding))));
    const name = displayName(resource.kind, resource.metadata.name);
    if (answer.outcome === "rejected") {
      refused += 1;
      context.stderr(`${name} refused: ${answer.message}\n`);
    } else {
      context.stdout(`${name} ${answer.outcome}\n`);
    }
  }
  context.stderr(renderFindings(findings, context));
  if (refused > 0 || findings.some(({ severity }) => severity === "error")) {
    throw new CommandFailure("", { exitCode: exitCodes.findings });
  }
}

/**
 * The resource was taken and is in force, and what it refers to may come with the next `apply`: a warning here, as
 * nobody would refuse it on Kubernetes, and an error to `tulle analyze`.
 */
function inForce(finding: Finding): Finding {
  return finding.severity === "error" ? { ...finding, severity: "warning" } : finding;
}

const folderAnnotation = "local.tulle.io/folder";

/**
 * Local commands are relative to the manifest, and whoever runs the Deployment has only the object: it carries the
 * folder. Not that of the instance, which needs no telling: what its own files say is to stay theirs.
 */
function withFolder(resource: MeshResource, instance: Instance): MeshResource {
  const file = placesOf(resource)?.file;
  if (resource.kind !== "Deployment" || file === undefined || file === "<stdin>") return resource;
  const folder = path.dirname(path.resolve(file));
  if (folder === instance.dir) return resource;
  const annotations = { [folderAnnotation]: folder, ...resource.metadata.annotations };
  return { ...resource, metadata: { ...resource.metadata, annotations } };
}
