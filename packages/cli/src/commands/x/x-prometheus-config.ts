// `tulle x prometheus-config`: a configuration with which Prometheus scrapes a running instance, and finds pods that
// come later by itself.
import path from "node:path";
import type { Command } from "commander";
import { controlPlaneName } from "@tulle/config";
import { endpoints } from "@tulle/config/api";
import { CommandFailure } from "../../command/command-failure.ts";
import type { CommandContext, InstanceOption } from "../../command/command-module.ts";
import { addExamples, addInstanceOption } from "../../command/command-options.ts";

export function registerPrometheusConfig(command: Command, context: CommandContext): void {
  addInstanceOption(command);
  addExamples(command, [
    ["tulle x prometheus-config > prometheus.yml", "then: prometheus --config.file prometheus.yml"],
  ]);
  command.action(async (options: InstanceOption) => {
    const { stateDir, apiUrl, elsewhere } = await context.instance(options);
    if (elsewhere !== undefined) {
      throw new CommandFailure("Prometheus reads the instance's token and roots from files", {
        hint: "Run this where the instance runs, without TULLE_URL.",
      });
    }
    context.stdout(prometheusConfig(stateDir, new URL(apiUrl).host));
  });
}

/** Strings of JSON are strings of YAML. The type is said because Prometheus 2.42 forgets its default here. */
function prometheusConfig(stateDir: string, api: string): string {
  const text = (value: string): string => JSON.stringify(value);
  return `# Scrapes the instance in ${JSON.stringify(path.dirname(stateDir))}.
global:
  scrape_interval: 15s
scrape_configs:
  # Every pod's proxy, with its agent and what its application serves.
  - job_name: tulle-pods
    http_sd_configs:
      - url: ${text(`https://${api}${endpoints.metricTargets.path}`)}
        refresh_interval: 5s
        authorization:
          type: Bearer
          credentials_file: ${text(path.join(stateDir, "token"))}
        tls_config:
          ca_file: ${text(path.join(stateDir, "ca", "root-cert.pem"))}
          server_name: ${text(controlPlaneName)}
  # The control plane, by the label with which Istio's dashboards look for it.
  - job_name: tulle-control-plane
    static_configs:
      - targets: [${text(api)}]
        labels: { app: istiod, namespace: tulle-system, pod: tulled }
`;
}
