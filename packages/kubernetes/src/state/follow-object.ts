// Follows one object of a namespace by its name: that something has happened to it, not what is in it.
import type { Logger } from "@tulle/telemetry";
import type { Clock } from "@tulle/timing";
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { metadataOnly, ObjectFollower } from "../follow/object-follower.ts";
import { collectionPath } from "../store/collections.ts";

export interface FollowObjectOptions {
  readonly client: KubernetesClient;
  readonly kind: "Secret" | "ConfigMap";
  readonly namespace: string;
  readonly name: string;
  /** Also when it is read first, and after a gap in which it may have changed. */
  readonly onChange: () => void;
  readonly clock: Clock;
  readonly log: Logger;
}

export function followObject({ kind, namespace, name, onChange, ...common }: FollowObjectOptions): ObjectFollower {
  const follower = new ObjectFollower({
    ...common,
    kind,
    apiVersion: "v1",
    path: collectionPath("v1", kind, namespace),
    query: { fieldSelector: `metadata.name=${name}` },
    accept: metadataOnly,
    random: Math.random,
    onList: onChange,
    onChange,
  });
  // Closed before it has read anything, it rejects.
  follower.start().catch(() => undefined);
  return follower;
}
