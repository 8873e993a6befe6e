// `tulle proxy-config`: what one proxy runs with, read from its admin interface. One file a sub-command.
import type { Command } from "commander";
import type { CommandContext } from "../command-module.ts";
import { addExamples } from "../command-options.ts";
import { registerBootstrap } from "./proxy-config-bootstrap.ts";
import { registerCluster } from "./proxy-config-cluster.ts";
import { registerEndpoint } from "./proxy-config-endpoint.ts";
import { registerListener } from "./proxy-config-listener.ts";
import { registerLog } from "./proxy-config-log.ts";
import { registerRoute } from "./proxy-config-route.ts";

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
  addExamples(command, [
    ["tulle proxy-config log catalog-v1-5d8f6c7b9-x2k4p.shop --level http:debug", "log each request of one proxy"],
    ["tulle proxy-config cluster catalog-v1-5d8f6c7b9-x2k4p -n shop", "its clusters"],
  ]);
}
