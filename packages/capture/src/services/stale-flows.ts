// Flows of UDP that still go to a pod that is gone: the kernel knows a flow by its addresses as long as packets come,
// and asks no rule again. Connections of TCP end with their pod. What is done by conntrack(8).
import { failureOf, runTool, type CaptureOptions } from "../rules/network-tools.ts";
import type { ServicePort } from "./service-ports.ts";

/** A way to a pod by which nothing may go any more. */
export interface StaleFlow {
  readonly family: 4 | 6;
  /** Undefined: at a port of the node, whatever its address. */
  readonly address?: string;
  readonly port: number;
  readonly pod: string;
}

/** A pod that ends, and still answers, keeps its flows. */
export function staleFlows(before: readonly ServicePort[], after: readonly ServicePort[]): readonly StaleFlow[] {
  const now = new Set(after.flatMap((port) => flowsOf(port).map(flowKey)));
  return before.flatMap((port) => flowsOf(port).filter((flow) => !now.has(flowKey(flow))));
}

function flowsOf(servicePort: ServicePort): readonly StaleFlow[] {
  const { family, protocol, clusterAddress, externalAddresses, port, nodePort, endpoints } = servicePort;
  if (protocol !== "udp") return [];
  const ways = [
    ...[clusterAddress, ...externalAddresses].map((address) => ({ family, address, port })),
    ...(nodePort === undefined ? [] : [{ family, port: nodePort }]),
  ];
  const pods = endpoints.filter(({ isReady, isServing }) => isReady || isServing);
  return pods.flatMap((pod) => ways.map((way) => ({ ...way, pod: pod.address })));
}

function flowKey({ family, address = "", port, pod }: StaleFlow): string {
  return `${family} ${address} ${port} ${pod}`;
}

/** @throws {CaptureFailure} where conntrack(8) is missing, or may not */
export async function dropFlows(flows: readonly StaleFlow[], options: CaptureOptions = {}): Promise<void> {
  for (const { family, address, port, pod } of flows) {
    const to = address === undefined ? [] : ["--orig-dst", address];
    const args = ["-D", "-f", `ipv${family}`, "-p", "udp", ...to, "--orig-port-dst", `${port}`, "--reply-src", pod];
    const result = await runTool("conntrack", args, "", options);
    // That there was none is no failure.
    if (result.exitCode !== 0 && !/\b0 flow entries/.test(result.stderr)) throw failureOf("conntrack", result);
  }
}
