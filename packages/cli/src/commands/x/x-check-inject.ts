// `tulle x check-inject`: whether a pod gets its proxy, or those of a Deployment, and why (istioctl: x check-inject).
import type { Command } from "commander";
import { type Deployment, explainInjection, type Pod, proxyContainers } from "@tulle/config";
import type { AskedWebhook } from "@tulle/kubernetes";
import { chooseResource } from "../../arguments/choose-resource.ts";
import { podArgumentText } from "../../arguments/choose-pod.ts";
import type { CommandContext, InstanceOption, OutputOption } from "../../command/command-module.ts";
import { addExamples, addInstanceOption, addOutputOption } from "../../command/command-options.ts";
import { connect, withApiFailures } from "../../instance/instance-client.ts";
import { isOnCluster } from "../../instance/on-cluster.ts";
import { formatFitting } from "../../printing/format-table.ts";
import { wrapText } from "../../printing/wrap-text.ts";
import { podOf } from "../../proxy-admin/proxy-admin.ts";

type Options = InstanceOption & OutputOption & { readonly namespace?: string };
type Labels = Readonly<Record<string, string>>;

interface Checked {
  readonly name: string;
  readonly namespace: string;
  /** What a pod that is made now gets. */
  readonly injects: boolean;
  readonly reason: string;
  readonly warnings: readonly string[];
  /** Of a pod that is there; undefined for a Deployment's template. */
  readonly hasProxy?: boolean;
  /** On a cluster: whom the API server asks. */
  readonly webhooks: readonly AskedWebhook[];
}

export function registerCheckInject(command: Command, context: CommandContext): void {
  addInstanceOption(command)
    .argument("<pod>", `${podArgumentText}, which means its template`)
    .option("-n, --namespace <namespace>", "its namespace");
  addOutputOption(command);
  addExamples(command, [
    ["tulle x check-inject deploy/webapp -n shop", "what the next pod of a Deployment gets"],
    ["tulle x check-inject webapp --context prod", "a pod of a cluster, and which webhook was asked"],
  ]);
  command.action(async (text: string, options: Options) => {
    const checked = await check(text, options, context);
    await context.printData(checked, options.output, () => checkedText(checked, context.columns));
  });
}

async function check(text: string, options: Options, context: CommandContext): Promise<Checked> {
  const instance = await context.instance(options);
  const api = connect(instance);
  const [, deploymentName] = /^(?:deploy|deployments?)\/(.+)$/.exec(text) ?? [];
  const { pod, hasProxy } = await withApiFailures(instance, async () => {
    if (deploymentName === undefined) {
      const found = podOf((await api.list("Pod")).items, text, options, context);
      return {
        pod: found,
        hasProxy: found.spec.containers.some(isProxy) || (found.spec.initContainers ?? []).some(isProxy),
      };
    }
    const { items } = await api.list("Deployment");
    const { namespace } = options;
    return {
      pod: templateOf(chooseResource("Deployment", items, { text: deploymentName, namespace })),
      hasProxy: undefined,
    };
  });
  const { name, namespace, labels = {}, annotations = {} } = pod.metadata;
  const found = await withApiFailures(instance, () => api.get("Namespace", "", namespace));
  const namespaceLabels: Labels = found?.metadata.labels ?? {};
  const decided = explainInjection({
    namespace,
    namespaceLabels,
    podLabels: labels,
    podAnnotations: annotations,
    hostNetwork: (pod.spec as { readonly hostNetwork?: boolean }).hostNetwork === true,
  });
  const inCluster = { ...namespaceLabels, "kubernetes.io/metadata.name": namespace };
  const webhooks = isOnCluster(instance)
    ? await (
        await import("@tulle/kubernetes")
      ).askedWebhooks(instance.client, { namespaceLabels: inCluster, podLabels: labels })
    : [];
  const isAsked = !isOnCluster(instance) || webhooks.some((each) => each.isAsked);
  const injects = decided.injection !== "none" && isAsked;
  const reason =
    decided.injection !== "none" && !isAsked ? "no webhook of the cluster is asked for it" : decided.reason;
  const { warnings } = decided;
  return { name, namespace, injects, reason, warnings, ...(hasProxy === undefined ? {} : { hasProxy }), webhooks };
}

const isProxy = ({ name }: { readonly name: string }): boolean => proxyContainers.has(name) || name === "proxy";

/** As its pods are made. */
function templateOf({ metadata, spec }: Deployment): { metadata: Pod["metadata"]; spec: object } {
  const { metadata: of, spec: pod } = spec.template;
  const { labels, annotations } = of ?? {};
  return { metadata: { ...metadata, labels, annotations } as Pod["metadata"], spec: pod };
}

export function checkedText(checked: Checked, columns: number | undefined): string {
  const { name, namespace, injects, reason, warnings, hasProxy, webhooks } = checked;
  const gets = hasProxy === undefined ? "its pods get" : "a pod like it gets";
  const lines = [`${name}.${namespace}: ${gets} ${injects ? "a proxy" : "no proxy"}, because ${reason}`];
  if (hasProxy === true && !injects) lines.push("This one has a proxy: it was made before that, or injected by hand.");
  if (hasProxy === false && injects) {
    lines.push("This one has none: it was made before that. Replace it: tulle rollout restart.");
  }
  lines.push(...warnings.map((warning) => `Warning: ${warning}`));
  const said = lines.map((line) => `${wrapText(line, columns, "  ")}\n`).join("");
  if (webhooks.length === 0) return said;
  const rows = webhooks.map((each) => [
    each.configuration,
    each.revision,
    each.isAsked ? "yes" : "no",
    each.by || "<none>",
  ]);
  return `${said}\n${formatFitting(["WEBHOOK", "REVISION", "ASKED", "BY"], rows, { columns, title: 0 })}`;
}
