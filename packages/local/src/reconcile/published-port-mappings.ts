// Ports of this machine that lead into the mesh: which are wanted, from annotations and from the command line.
import { isIP } from "node:net";
import { isHttp, portProtocol, type Service } from "@tulle/config";
import type { PublishedPort } from "../instance.ts";
import type { PlanProblem } from "../pod/pod-plan.ts";

export const publishAnnotation = "local.tulle.io/publish";

/** `hostPort` of this machine leads to `targetPort` of the pods behind a Service. */
export interface PortMapping {
  /** Where others than programs of this machine shall come in; 127.0.0.1 when missing. */
  readonly hostAddress?: string;
  readonly hostPort: number;
  readonly targetPort: number;
}

export interface WantedPort extends PortMapping {
  readonly service: string;
  readonly namespace: string;
  readonly protocol: PublishedPort["protocol"];
}

/** Reads `8080:8080`, `10.0.0.5:8080:8080` or several of them with commas; a text tells what is wrong. */
export function parsePortMappings(text: string): readonly PortMapping[] | string {
  const mappings: PortMapping[] = [];
  for (const part of text.split(",")) {
    const match = /^\s*(?:(?:\[([^\]]+)\]|([\d.]+)):)?(\d{1,5}):(\d{1,5})\s*$/.exec(part);
    const hostAddress = match?.[1] ?? match?.[2];
    const [hostPort, targetPort] = [Number(match?.[3]), Number(match?.[4])];
    const isPair = match !== null && hostPort >= 1 && hostPort <= 65_535 && targetPort >= 1 && targetPort <= 65_535;
    if (!isPair || (hostAddress !== undefined && isIP(hostAddress) === 0)) {
      return `"${part.trim()}" is not <port of this machine>:<target port>, such as 8080:8080 or 10.0.0.5:8080:8080`;
    }
    mappings.push({ hostPort, targetPort, ...(hostAddress === undefined ? {} : { hostAddress }) });
  }
  return mappings;
}

/**
 * The published ports that Services ask for. `overrides` (from `--publish`) replace the host port of every mapping with
 * the same target port, and its address if they name one.
 */
export function wantedPorts(
  services: readonly Service[],
  overrides: readonly PortMapping[],
): { readonly ports: readonly WantedPort[]; readonly problems: readonly (PlanProblem & { service: Service })[] } {
  const ports: WantedPort[] = [];
  const problems: (PlanProblem & { service: Service })[] = [];
  for (const service of services) {
    const text = service.metadata.annotations?.[publishAnnotation];
    if (text === undefined) continue;
    const mappings = parsePortMappings(text);
    if (typeof mappings === "string") {
      problems.push({
        service,
        message: `the annotation ${publishAnnotation}: ${mappings}`,
        suggestion: `Write it like this:\n  ${publishAnnotation}: "8080:8080"`,
      });
      continue;
    }
    const { name, namespace } = service.metadata;
    for (const mapping of mappings) {
      const override = overrides.filter(({ targetPort }) => targetPort === mapping.targetPort);
      for (const chosen of override.length > 0 ? override : [mapping]) {
        const protocol = clientProtocol(service, chosen.targetPort);
        ports.push({ ...mapping, ...chosen, service: name, namespace, protocol });
      }
    }
  }
  return { ports, problems };
}

function clientProtocol({ spec }: Service, targetPort: number): PublishedPort["protocol"] {
  const port = spec.ports.find((each) => (each.targetPort ?? each.port) === targetPort);
  const protocol = port === undefined ? "auto" : portProtocol(port);
  if (isHttp(protocol)) return "http";
  return protocol === "https" ? "https" : "tcp";
}
