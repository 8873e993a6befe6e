// `tulle x`: what istioctl keeps under the same letter. One file a sub-command.
import type { Command } from "commander";
import type { CommandContext } from "../../command/command-module.ts";
import { addExamples } from "../../command/command-options.ts";
import { register as registerAuthz } from "../authz/authz.ts";
import { registerCheckInject } from "./x-check-inject.ts";
import { registerPrometheusConfig } from "./x-prometheus-config.ts";
import { registerWait } from "./x-wait.ts";
import { registerDescribePod, registerDescribeService } from "./x-describe.ts";

export function register(command: Command, context: CommandContext): void {
  const describe = command.command("describe").alias("des").description("A pod or Service, and all that holds for it.");
  const pod = describe.command("pod").alias("po").description("A pod: its Services, routes to it, and policies.");
  registerDescribePod(pod, context);
  const service = describe
    .command("service")
    .alias("svc")
    .description("A Service: its pods, routes to it, and policies.");
  registerDescribeService(service, context);
  registerCheckInject(
    command.command("check-inject").description("Whether a pod, or a Deployment's, gets its proxy, and why."),
    context,
  );
  registerWait(command.command("wait").description("Wait until every proxy has what was applied."), context);
  registerPrometheusConfig(
    command.command("prometheus-config").description("A configuration with which Prometheus scrapes the instance."),
    context,
  );
  registerAuthz(command.command("authz").description("The AuthorizationPolicies that a proxy enforces."), context);
  addExamples(command, [
    ["tulle x describe pod catalog-v1", "the start of a pod's name will do"],
    ["tulle x describe service catalog.shop", "or: service catalog -n shop"],
    ["tulle x wait", "behind an apply, in a script"],
  ]);
}
