// `tulle exec`: runs a command as a pod's container does, with the terminal and the streams of who typed it.
import type { Command } from "commander";
import { podArgumentText } from "../../arguments/choose-pod.ts";
import { CommandFailure } from "../../command/command-failure.ts";
import type { CommandContext, InstanceOption } from "../../command/command-module.ts";
import { addExamples, addInstanceOption } from "../../command/command-options.ts";
import { requireHere } from "../../instance/control-plane-elsewhere.ts";
import { enterPod } from "../../instance/enter-pod.ts";
import { connect, withApiFailures } from "../../instance/instance-client.ts";
import { isOnCluster } from "../../instance/on-cluster.ts";
import { podOf } from "../../proxy-admin/proxy-admin.ts";
import { execOnCluster } from "./exec-on-cluster.ts";
import { LocalhostPorts } from "./localhost-ports.ts";
import { runToItsEnd } from "./run-to-its-end.ts";

export interface ExecOptions extends InstanceOption {
  readonly container?: string;
  readonly namespace?: string;
}

export function register(command: Command, context: CommandContext): void {
  command.argument("<pod>", podArgumentText);
  command.argument("<command...>", "what is run, with its arguments, behind --");
  addInstanceOption(command);
  command.option("-n, --namespace <namespace>", "namespace of the pod");
  command.option("-c, --container <name>", "container's name, app, or proxy (default: the first one, else the proxy)");
  addExamples(command, [
    ["tulle exec catalog-v1 -- curl -s localhost:3000/items/1", "ask the app past its proxy"],
    ["tulle exec webapp -- curl -s http://catalog/items/1", "ask another Service through the proxy, as the app does"],
    ["tulle exec deploy/webapp --context prod -- node --version", "in a container of a cluster's pod"],
    ["tulle exec catalog-v1 -- sh", "a shell with the app's environment, in its folder"],
  ]);
  command.action(async (pod: string, argv: readonly string[], options: ExecOptions) => {
    const instance = await context.instance(options);
    if (isOnCluster(instance)) return execOnCluster(instance, pod, argv, options, context);
    requireHere(instance);
    const client = connect(instance);
    const { items } = await withApiFailures(instance, () => client.list("Pod"));
    const { name, namespace } = podOf(items, pod, options, context).metadata;
    const entry = await enterPod(instance, { pod: name, namespace, container: options.container }, context);
    await using ports = await LocalhostPorts.open(entry.localhost);
    for (const { port, address, reason } of ports.missing) {
      const where = `in ${name} it would be ${address}:${port}`;
      context.stderr(`tulle: localhost:${port} is this machine's (${reason}); ${where}\n`);
    }
    // Of the terminal that it runs at, not of that where `tulle up` was typed.
    const term = context.env["TERM"];
    const env = term === undefined ? entry.env : { ...entry.env, TERM: term };
    const exitCode = await runToItsEnd({
      argv: [...entry.enter, ...argv],
      cwd: entry.cwd,
      env,
      isWaitedFor: entry.enterNetwork.length > 0,
    });
    if (exitCode !== 0) throw new CommandFailure("", { exitCode });
  });
}
