// Takes an installation out of a cluster: what carries its labels, whoever has put it there. Webhooks go first, so
// that nothing is held up by a control plane that has gone, and a namespace that came with the rest goes last.
import { setTimeout as delay } from "node:timers/promises";
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { KubernetesError } from "../client/kubernetes-error.ts";
import {
  authoritySecret,
  leaderLease,
  reportsConfigMap,
  revisionLabel,
  rootsConfigMap,
  stateSecret,
  webhooksLease,
} from "../names.ts";
import { InstallFailure } from "./install-objects.ts";
import { type InstalledObject, installedKinds, collectionOf, objectText, pathOfObject } from "./object-kinds.ts";

export interface UninstallOptions {
  readonly client: KubernetesClient;
  readonly namespace: string;
  /** One revision's control plane and gateways; all of Tulle when missing. */
  readonly revision?: string;
  readonly timeoutMs: number;
  readonly tell: (line: string) => void;
}

interface Listed {
  readonly items: readonly { readonly metadata: InstalledObject["metadata"] }[];
}

const partOf = "app.kubernetes.io/part-of=tulle";
const pollMs = 300;

/** What would be removed. */
export async function installedOf({
  client,
  revision,
}: Pick<UninstallOptions, "client" | "revision">): Promise<readonly InstalledObject[]> {
  const labelSelector = revision === undefined ? partOf : `${partOf},${revisionLabel}=${revision}`;
  const found: InstalledObject[] = [];
  for (const { kind, apiVersion } of installedKinds) {
    const { items } = await client.request<Listed>({ path: collectionOf(kind), query: { labelSelector } });
    // A control plane that still runs writes roots again: they go when it has gone, with all else that it has written.
    const installed = items.filter(({ metadata }) => metadata.name !== rootsConfigMap.name);
    found.push(...installed.map(({ metadata }) => ({ apiVersion, kind, metadata })));
  }
  return found.toReversed();
}

/** What the control plane itself has written: roots in every namespace, and its state. */
export async function writtenOf({
  client,
  namespace,
}: Pick<UninstallOptions, "client" | "namespace">): Promise<readonly string[]> {
  const { items } = await client.request<Listed>({
    path: "/api/v1/configmaps",
    query: { fieldSelector: `metadata.name=${rootsConfigMap.name}` },
  });
  const within = encodeURIComponent(namespace);
  const leases = await client.request<Listed>({ path: `/apis/coordination.k8s.io/v1/namespaces/${within}/leases` });
  const ofDefault = webhooksLease("default");
  const isOwn = (name: string): boolean =>
    name === leaderLease || name === ofDefault || name.startsWith(`${ofDefault}-`);
  return [
    ...items.map(({ metadata: { namespace: each = "" } }) => {
      return `/api/v1/namespaces/${encodeURIComponent(each)}/configmaps/${rootsConfigMap.name}`;
    }),
    ...leases.items
      .filter(({ metadata }) => isOwn(metadata.name))
      .map(({ metadata }) => `/apis/coordination.k8s.io/v1/namespaces/${within}/leases/${metadata.name}`),
    `/api/v1/namespaces/${within}/configmaps/${reportsConfigMap}`,
    ...[authoritySecret, stateSecret].map((name) => `/api/v1/namespaces/${within}/secrets/${name}`),
  ];
}

export async function uninstallObjects(options: UninstallOptions, objects: readonly InstalledObject[]): Promise<void> {
  const { client, revision, tell } = options;
  const namespaces = objects.filter(({ kind }) => kind === "Namespace");
  const within = objects.filter((object) => !namespaces.includes(object));
  for (const object of within) {
    if (await remove(client, pathOfObject(object))) tell(`${objectText(object)} removed`);
  }
  await waitUntilGone(options, within);
  if (revision !== undefined) {
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(options.namespace)}/leases`;
    await remove(client, `${leases}/${encodeURIComponent(webhooksLease(revision))}`);
  } else {
    const written = await writtenOf(options);
    for (const path of written) await remove(client, path);
    tell("the roots in all namespaces, and the control plane's state, removed");
  }
  for (const object of namespaces) {
    if (await remove(client, pathOfObject(object))) tell(`${objectText(object)} removed`);
  }
  await waitUntilGone(options, namespaces);
}

/** Whether it was there. */
async function remove(client: KubernetesClient, path: string): Promise<boolean> {
  try {
    // What belongs to it goes first: when it is gone, its pods are.
    const body = { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: "Foreground" };
    await client.request({ method: "DELETE", path, body });
    return true;
  } catch (error) {
    if (error instanceof KubernetesError && error.code === 404) return false;
    throw error;
  }
}

async function waitUntilGone(
  { client, timeoutMs, tell }: UninstallOptions,
  objects: readonly InstalledObject[],
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (const object of objects) {
    for (let isTold = false; await isThere(client, pathOfObject(object)); isTold = true) {
      if (!isTold) tell(`waiting until ${objectText(object)} is gone`);
      if (performance.now() > deadline) throw new InstallFailure(`${objectText(object)} is still there`);
      await delay(pollMs);
    }
  }
}

async function isThere(client: KubernetesClient, path: string): Promise<boolean> {
  try {
    await client.request({ path });
    return true;
  } catch (error) {
    if (error instanceof KubernetesError && error.code === 404) return false;
    throw error;
  }
}
