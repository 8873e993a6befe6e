// An instance that is a cluster's, as commands see it: the same interface, behind which another way leads. This file
// loads nothing of Kubernetes, so that commands about a laptop's instance start as quickly as before.
import type { Duplex, Readable } from "node:stream";
import type { ApiClient } from "@tulle/config";
import type { CommandStreams, KubernetesClient, PodCommand } from "@tulle/kubernetes";
import { CommandFailure } from "../command/command-failure.ts";
import type { Instance } from "@tulle/local/instance";

export interface PodPort {
  readonly namespace: string;
  readonly pod: string;
  readonly port: number;
}

export interface PodLog {
  readonly namespace: string;
  readonly pod: string;
  readonly container?: string;
  readonly follow?: boolean;
  readonly tailLines?: number;
}

export interface ClusterInstance extends Instance {
  /** Of its control plane; what is written goes to the API server, with the user's own rights. */
  readonly api: ApiClient;
  /** Into the pod's network, at its localhost. */
  connectTo(target: PodPort): Duplex;
  log(which: PodLog): Promise<Readable>;
  /** A command in a container. Resolves to its exit status. */
  exec(which: PodCommand, streams: CommandStreams): Promise<number>;
  /** Its API server. */
  readonly client: KubernetesClient;
}

export function isOnCluster(instance: Instance): instance is ClusterInstance {
  return "connectTo" in instance;
}

/** What the API server refuses, in its words. */
export function withClusterFailures<T>(instance: ClusterInstance, asked: Promise<T>): Promise<T> {
  return asked.catch((error: Error) => {
    throw new CommandFailure(error.message, { hint: `Asked as ${instance.dir}.`, cause: error });
  });
}
