/**
 * Which mode of mutual TLS holds for the ports of a workload: port, else workload, else namespace, else mesh, else
 * PERMISSIVE. Analysis and the control plane ask here alike.
 */
import { selects } from "./label-selector.ts";
import { rootNamespaces } from "./policy-scope.ts";

export type MutualTlsMode = "DISABLE" | "PERMISSIVE" | "STRICT";

interface PeerAuthenticationResource {
  readonly metadata: { readonly namespace: string };
  readonly spec: {
    readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> };
    readonly mtls?: StatedMode;
    readonly portLevelMtls?: Readonly<Record<string, StatedMode>>;
  };
}

interface StatedMode {
  readonly mode?: MutualTlsMode | "UNSET";
}

/** A PeerAuthentication as modes are found by it. Modes that are UNSET are left out. */
export interface PeerAuthenticationScope {
  readonly namespace: string;
  /** Empty for all workloads. */
  readonly matchLabels: Readonly<Record<string, string>>;
  readonly mode?: MutualTlsMode;
  /** By the port that the workload listens on; undefined where it asks for the mode of the workload. */
  readonly ports: Readonly<Record<number, MutualTlsMode | undefined>>;
}

/** The modes of one workload. */
export interface MutualTlsModes {
  readonly mode: MutualTlsMode;
  /** Ports that differ from `mode`. */
  readonly ports: Readonly<Record<number, MutualTlsMode>>;
}

export function peerAuthenticationScope({ metadata, spec }: PeerAuthenticationResource): PeerAuthenticationScope {
  const mode = setMode(spec.mtls?.mode);
  return {
    namespace: metadata.namespace,
    matchLabels: spec.selector?.matchLabels ?? {},
    ...(mode === undefined ? {} : { mode }),
    ports: Object.fromEntries(
      Object.entries(spec.portLevelMtls ?? {}).map(([port, each]) => [Number(port), setMode(each.mode)]),
    ),
  };
}

function setMode(mode: MutualTlsMode | "UNSET" | undefined): MutualTlsMode | undefined {
  return mode === "UNSET" ? undefined : mode;
}

/**
 * `policies` stand oldest first: of two for the same workloads the older one counts. A policy with a selector in a root
 * namespace is for nobody (Istio: ComposePeerAuthentication).
 */
export function mutualTlsModes(
  policies: readonly PeerAuthenticationScope[],
  workload: { readonly namespace: string; readonly labels: Readonly<Record<string, string>> },
): MutualTlsModes {
  const mesh = policies.find((policy) => isForAll(policy) && isRoot(policy.namespace));
  const own = policies.filter(({ namespace }) => namespace === workload.namespace && !isRoot(namespace));
  const namespace = own.find(isForAll);
  const selected = own.find(
    ({ matchLabels }) => Object.keys(matchLabels).length > 0 && selects(matchLabels, workload.labels),
  );
  const mode = selected?.mode ?? namespace?.mode ?? mesh?.mode ?? "PERMISSIVE";
  const ports = Object.entries(selected?.ports ?? {}).flatMap(([port, each]) =>
    each === undefined || each === mode ? [] : [[Number(port), each] as const],
  );
  return { mode, ports: Object.fromEntries(ports) };
}

export function modeOfPort({ mode, ports }: MutualTlsModes, port: number): MutualTlsMode {
  return ports[port] ?? mode;
}

function isForAll({ matchLabels }: PeerAuthenticationScope): boolean {
  return Object.keys(matchLabels).length === 0;
}

function isRoot(namespace: string): boolean {
  return rootNamespaces.includes(namespace);
}
