// `tulle proxy-config`: what one proxy runs with, read from its admin interface. One file a sub-command.
import type { Command } from "commander";
import type { CommandContext } from "../../command/command-module.ts";
import { addExamples } from "../../command/command-options.ts";
import { registerBootstrap } from "./proxy-config-bootstrap.ts";
import { registerCluster } from "./proxy-config-cluster.ts";
import { registerEndpoint } from "./proxy-config-endpoint.ts";
import { registerListener } from "./proxy-config-listener.ts";
import { registerLog } from "./proxy-config-log.ts";
import { registerRootcaCompare } from "./proxy-config-rootca-compare.ts";
import { registerRoute } from "./proxy-config-route.ts";
import { registerSecret } from "./proxy-config-secret.ts";

export function register(command: Command, context: CommandContext): void {
  // The plurals are what istioctl knows too.
  const add = (name: string, alias: string, summary: string): Command =>
    command.command(name).alias(alias).alias(`${name}s`).description(summary);
  registerBootstrap(add("bootstrap", "b", "The bootstrap document that the proxy was started with."), context);
  registerCluster(add("cluster", "c", "Where requests can go."), context);
  registerEndpoint(add("endpoint", "ep", "The addresses behind clusters, and whether they are healthy."), context);
  registerListener(add("listener", "l", "What the proxy accepts."), context);
  registerLog(add("log", "o", "Show or change the levels of the proxy's log."), context);
  registerRoute(add("route", "r", "Which request goes to which cluster."), context);
  registerSecret(add("secret", "s", "The certificates that the proxy shows and trusts."), context);
  registerRootcaCompare(
    command.command("rootca-compare").alias("rc").description("Whether two proxies trust the same authorities."),
    context,
  );
  // Their arguments, of which one has two, would leave no room for what they do.
  command.configureHelp({ subcommandTerm: (each) => [each.name(), each.alias()].join("|") });
  addExamples(command, [
    ["tulle proxy-config log catalog-v1-5d8f6c7b9-x2k4p.shop --level http:debug", "log each request of one proxy"],
    ["tulle proxy-config cluster catalog-v1-5d8f6c7b9-x2k4p -n shop", "its clusters"],
    ["tulle proxy-config secret catalog-v1", "its certificates; the start of a pod's name will do"],
  ]);
}
