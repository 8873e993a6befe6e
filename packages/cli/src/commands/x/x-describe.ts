// `tulle x describe`: a pod or a Service with everything that decides who reaches it, and how.
import type { Command } from "commander";
import type { ApiClient, Kind, Pod } from "@tulle/config";
import type { Instance } from "@tulle/local/instance";
import { chooseResource } from "../../arguments/choose-resource.ts";
import { CommandFailure } from "../../command/command-failure.ts";
import type { CommandContext, OutputOption } from "../../command/command-module.ts";
import { addInstanceOption, addOutputOption } from "../../command/command-options.ts";
import { connect, withApiFailures } from "../../instance/instance-client.ts";
import { enforcedPolicies } from "../../proxy-admin/enforced-policies.ts";
import { describePod, describeService, isSelected, type DescribedMesh } from "./describe-facts.ts";
import { podText, serviceText } from "./describe-text.ts";
import { addPodArgument, podOf, type PodOptions, proxyAdminOf } from "../../proxy-admin/proxy-admin.ts";
import { listenersOf } from "../../proxy-admin/proxy-dump.ts";

export function registerDescribePod(command: Command, context: CommandContext): void {
  addOutputOption(addPodArgument(command));
  command.action(async (name: string, options: PodOptions & OutputOption) => {
    const instance = await context.instance(options);
    const mesh = await readMesh(instance);
    const pod = podOf(mesh.pods, name, options, context);
    const facts = { ...describePod(mesh, pod), policies: await policiesOf(pod, instance, context) };
    await context.printData(facts, options.output, () => podText(facts, context.columns));
  });
}

export function registerDescribeService(command: Command, context: CommandContext): void {
  addOutputOption(addInstanceOption(command))
    .argument("<service>", "Service, or <service>.<namespace>")
    .option("-n, --namespace <namespace>", "namespace of the Service");
  command.action(async (name: string, options: PodOptions & OutputOption) => {
    const instance = await context.instance(options);
    const mesh = await readMesh(instance);
    const service = chooseResource("Service", mesh.services, { text: name, namespace: options.namespace });
    const pod = mesh.pods.find((each) => isSelected(service, each));
    const policies = pod === undefined ? undefined : await policiesOf(pod, instance, context);
    const facts = { ...describeService(mesh, service), policies };
    await context.printData(facts, options.output, () => serviceText(facts, context.columns));
  });
}

async function readMesh(instance: Instance): Promise<DescribedMesh> {
  const client = connect(instance);
  return withApiFailures(instance, async () => {
    const [pods, services, destinationRules, virtualServices, gateways, peerAuthentications, requestAuthentications] =
      await Promise.all([
        listAll(client, "Pod"),
        listAll(client, "Service"),
        listAll(client, "DestinationRule"),
        listAll(client, "VirtualService"),
        listAll(client, "Gateway"),
        listAll(client, "PeerAuthentication"),
        listAll(client, "RequestAuthentication"),
      ]);
    return {
      pods,
      services,
      destinationRules,
      virtualServices,
      gateways,
      peerAuthentications,
      requestAuthentications,
      publishedPorts: instance.publishedPorts,
    };
  });
}

async function listAll<K extends Kind>(client: ApiClient, kind: K) {
  return (await client.list(kind)).items;
}

/** What its proxy enforces now; undefined where no proxy answers. */
async function policiesOf(pod: Pod, instance: Instance, context: CommandContext) {
  try {
    return enforcedPolicies(await listenersOf(await proxyAdminOf(pod, instance, context)));
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    return undefined;
  }
}
