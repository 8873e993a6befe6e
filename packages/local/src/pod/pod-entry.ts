// What a command needs to run as a pod's container does (`tulle exec`). The supervisor answers for its pods; who asks
// runs the command, at a terminal of his own.
import { existsSync } from "node:fs";
import type { PodPlan } from "./pod-plan.ts";
import { type Program, proxyContainer } from "./program.ts";
import type { PodNetwork } from "../network/pod-network.ts";
import type { ProxiedPod } from "./sidecar.ts";

export interface EntryRequest {
  readonly namespace: string;
  readonly pod: string;
  /** `app` is the first one, `proxy` the proxy; without it the first one, of a gateway its proxy. */
  readonly container: string | undefined;
}

export interface PodEntry {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Words before the command, which lead into the pod. */
  readonly enter: readonly string[];
  /** Words before a program of this user, which lead it into a network of the pod's own, and nothing else. */
  readonly enterNetwork: readonly string[];
  /** Where the ports are that `localhost` has within a pod, where that is not the pod's own. */
  readonly localhost: readonly LocalhostPort[];
}

export interface LocalhostPort {
  readonly port: number;
  readonly address: string;
}

/** The problem is for people. */
export type EntryAnswer = { readonly entry: PodEntry } | { readonly problem: string; readonly hint?: string };

/** What a pod is entered by. */
export interface EnteredPod {
  readonly name: string;
  readonly plan: PodPlan;
  readonly programs: readonly Program[];
  readonly network: Pick<PodNetwork, "ways" | "interceptionMode">;
  readonly localhost: readonly LocalhostPort[];
}

/** The proxy's pages and its agent's, which a container asks by `localhost` on Kubernetes. */
const proxyPages = [15_000, 15_020, 15_021];

export function entryOf(
  { name, plan, programs, network, localhost }: EnteredPod,
  container: string | undefined,
): EntryAnswer {
  if (programs.length === 0) {
    const [problem] = plan.problems;
    return { problem: `${name} cannot run here: ${problem?.message}`, ...(problem && { hint: problem.suggestion }) };
  }
  const apps = programs.filter((program) => program.plan !== undefined);
  const [first = programs[0]!] = apps;
  const proxy = programs.find((program) => program.plan === undefined);
  const known: readonly (readonly [name: string | undefined, program: Program | undefined])[] = [
    [undefined, first],
    ...apps.map((program) => [program.plan?.name, program] as const),
    [proxyContainer, proxy],
    ["app", apps[0]],
    ["proxy", proxy],
  ];
  const program = known.find(([each]) => each === container)?.[1];
  if (program === undefined) {
    const names = [...apps.map(({ plan: own }) => own!.name), ...(proxy === undefined ? [] : [proxyContainer])];
    return { problem: `${name} has no container "${container}"`, hint: `It has: ${names.join(", ")}` };
  }
  if (network.interceptionMode !== "NONE" && network.ways === undefined)
    return { problem: `the network of ${name} is not there yet` };
  const { cwd, launch } = program.process.spec;
  const made = launch();
  const which = program.plan?.name ?? proxyContainer;
  if ("missing" in made) return { problem: `the environment of ${which} in ${name} is not there: ${made.missing}` };
  if (!existsSync(cwd)) return { problem: `the folder of ${which} in ${name} is not there: ${cwd}` };
  const { fromOutside = [], toNetwork = [] } = network.ways ?? {};
  const enter = [...fromOutside, ...(made.enter ?? [])];
  return { entry: { cwd, env: made.env, enter, enterNetwork: toNetwork, localhost } };
}

/** `published` lead to the pod at the machine's own localhost. */
export function localhostOf(
  { plan, network, ports }: Pick<ProxiedPod, "plan" | "ports" | "network">,
  published: readonly { readonly hostPort: number; readonly targetPort: number }[],
): readonly LocalhostPort[] {
  // A network of its own has a localhost of its own.
  if (network.interceptionMode !== "NONE") return [];
  const { addresses } = network;
  const isGateway = plan.injection === "gateway";
  const own = ports.map(({ port }) => ({ port, address: isGateway ? addresses.pod : addresses.app }));
  const pages = plan.injection === "none" ? [] : proxyPages.map((port) => ({ port, address: addresses.pod }));
  const leads = ({ port }: LocalhostPort): boolean =>
    isGateway && published.some(({ hostPort, targetPort }) => hostPort === port && targetPort === port);
  return [...own, ...pages].filter((each) => !leads(each));
}
