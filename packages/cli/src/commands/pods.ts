// `tulle pods`: what runs, where its proxy listens and where its app.
import type { Command } from "commander";
import type { Pod } from "@tulle/config";
import type { CommandContext, InstanceOption, OutputOption } from "../command-module.ts";
import { addExamples, addInstanceOption, addOutputOption } from "../command-options.ts";
import { connect, withApiFailures } from "../instance-client.ts";
import { formatFitting } from "../format-table.ts";
import { wrapText } from "../wrap-text.ts";

/** One pod in the data that `-o json` prints. */
export interface PodRow {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Where the proxy listens, its admin interface (port 15000) too; the app itself when there is no proxy. */
  readonly address: string;
  /** The app itself, past its proxy; null for a gateway, which has none. */
  readonly app: { readonly address: string; readonly port: number | null } | null;
  readonly ready: boolean;
  readonly restarts: number;
  /** Why it does not run, when that is known. */
  readonly message?: string;
}

// The annotation is the local platform's; loading its package for one name would double this command's start.
const appAddressAnnotation = "local.tulle.io/app-address";
const gatewayTemplates = ["inject.tulle.io/templates", "inject.istio.io/templates"];

export function register(command: Command, context: CommandContext): void {
  addInstanceOption(command);
  addOutputOption(command);
  command.option("-n, --namespace <namespace>", "only this namespace");
  addExamples(command, [
    ["tulle pods", "a table"],
    ["tulle pods -n shop -o json", "names, labels and addresses, for a program"],
  ]);
  command.action(async (options: InstanceOption & OutputOption & { readonly namespace?: string }) => {
    const instance = await context.instance(options);
    const client = connect(instance);
    const { items } = await withApiFailures(instance, () => client.list("Pod", options.namespace));
    const rows = items.map(podRow).sort((a, b) => (`${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1));
    await context.printData(rows, options.output, () =>
      rows.length === 0 ? "No pods.\n" : table(rows, context.columns),
    );
  });
}

export function podRow(pod: Pod): PodRow {
  const annotations = pod.metadata.annotations ?? {};
  const isGateway = gatewayTemplates.some((name) => annotations[name] === "gateway");
  const condition = pod.status?.conditions?.find(({ type }) => type === "Ready");
  const address = pod.status?.podIP ?? "";
  return {
    name: pod.metadata.name,
    namespace: pod.metadata.namespace,
    labels: pod.metadata.labels ?? {},
    address,
    app: isGateway
      ? null
      : {
          address: annotations[appAddressAnnotation] ?? address,
          port: pod.spec.containers[0]?.ports?.[0]?.containerPort ?? null,
        },
    ready: condition?.status === "True",
    restarts: (pod.status?.containerStatuses ?? []).reduce((sum, { restartCount = 0 }) => sum + restartCount, 0),
    ...(condition?.message === undefined ? {} : { message: condition.message }),
  };
}

function table(rows: readonly PodRow[], columns: number | undefined): string {
  const text = formatFitting(
    ["NAMESPACE", "NAME", "READY", "RESTARTS", "ADDRESS", "APP"],
    rows.map((row) => [
      row.namespace,
      row.name,
      row.ready ? "yes" : "no",
      String(row.restarts),
      row.address,
      row.app === null ? "-" : row.app.address + (row.app.port === null ? "" : `:${row.app.port}`),
    ]),
    { columns, title: 1 },
  );
  const notes = rows
    .filter((row) => row.message !== undefined)
    .map((row) => `${wrapText(`${row.name}: ${row.message}`, columns, "  ")}\n`);
  return text + notes.join("");
}
