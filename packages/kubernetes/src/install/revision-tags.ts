// Revision tags: names that namespaces are labelled with in the place of a revision, so that an upgrade moves one tag
// and no namespace. A tag is a webhook configuration of its own, which leads to the revision's control plane.
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { unlessMissing } from "../client/kubernetes-error.ts";
import { injectorWebhook, revisionLabel, tagLabel } from "../names.ts";
import { evaluateManifests } from "./evaluate.ts";
import { installManager } from "./install-objects.ts";
import { collectionOf, type InstalledObject, pathOfObject } from "./object-kinds.ts";
import { type Manifest, releaseNamespace } from "./template.ts";
import { tulledLabels, tulledName } from "./tulled-names.ts";
import type { Fields, Values } from "./values.ts";
import { injectorConfiguration } from "./webhooks.ts";

export interface RevisionTag {
  readonly tag: string;
  readonly revision: string;
  /** Namespaces that are labelled with it. */
  readonly namespaces: readonly string[];
}

export class TagFailure extends Error {
  override readonly name = "TagFailure";
}

const admission = "admissionregistration.k8s.io";
const authorization = "rbac.authorization.k8s.io";

interface Configuration extends InstalledObject {
  readonly webhooks: readonly (Fields & { readonly clientConfig: Fields })[];
}

const collection = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const nameOf = (tag: string): string => `tulle-revision-tag-${tag}`;

/** Moves it, where it is there. @throws {TagFailure} */
export async function setTag(
  client: KubernetesClient,
  { tag, revision, namespace, values }: { tag: string; revision: string; namespace: string; values: Values },
): Promise<void> {
  const own = await read(client, injectorWebhook(revision));
  if (own === undefined) throw new TagFailure(`there is no revision ${revision}: its webhook is not there`);
  if (tag === "default" && (await read(client, injectorWebhook("default"))) !== undefined) {
    throw new TagFailure("a revision named default is installed, which pods without a revision are of already");
  }
  if (tag === revision) throw new TagFailure(`${tag} is the revision itself`);
  const isDefault = { is: "equal", path: "tulled.revision", to: tag === "default" ? revision : "" } as const;
  const name = nameOf(tag);
  const manifest = injectorConfiguration({ name, selects: tag, isDefault });
  const [made, ...rights] = evaluateManifests([manifest, ...rightsOf(name)], {
    namespace,
    values: { ...values, tulled: { ...values["tulled"], revision } },
  }) as readonly [Configuration, ...InstalledObject[]];
  const { labels } = made.metadata as { readonly labels?: Fields };
  // The certificate of the revision's own webhook: both lead to the same Service.
  const { caBundle } = own.webhooks[0]?.clientConfig ?? {};
  const object = {
    ...made,
    metadata: { name, labels: { ...labels, [tagLabel]: tag } },
    webhooks: made.webhooks.map((webhook) => ({ ...webhook, clientConfig: { ...webhook.clientConfig, caBundle } })),
  };
  for (const each of [...rights, object]) await client.apply(pathOfObject(each), each, installManager);
}

/** Of the revision's control plane: it keeps the certificate of the tag's webhook. */
function rightsOf(name: string): readonly Manifest[] {
  const metadata = { name, labels: tulledLabels };
  const rule = { apiGroups: [admission], resources: ["mutatingwebhookconfigurations"], resourceNames: [name] };
  return [
    { apiVersion: `${authorization}/v1`, kind: "ClusterRole", metadata, rules: [{ ...rule, verbs: ["patch"] }] },
    {
      apiVersion: `${authorization}/v1`,
      kind: "ClusterRoleBinding",
      metadata,
      roleRef: { apiGroup: authorization, kind: "ClusterRole", name },
      subjects: [{ kind: "ServiceAccount", name: tulledName, namespace: releaseNamespace }],
    },
  ];
}

export async function listTags(client: KubernetesClient): Promise<readonly RevisionTag[]> {
  const { items } = await client.request<{ readonly items: readonly InstalledObject[] }>({
    path: collection,
    query: { labelSelector: tagLabel },
  });
  const namespaces = await client.request<{ readonly items: readonly InstalledObject[] }>({
    path: "/api/v1/namespaces",
  });
  return items.map(({ metadata }) => {
    const labels = metadata["labels"] as Readonly<Record<string, string>>;
    const tag = labels[tagLabel]!;
    const isLabelled = (of: InstalledObject): boolean => {
      const given = (of.metadata["labels"] ?? {}) as Readonly<Record<string, string>>;
      return (given[revisionLabel] ?? given["istio.io/rev"]) === tag;
    };
    const named = namespaces.items.filter(isLabelled).map((each) => each.metadata.name);
    return { tag, revision: labels[revisionLabel]!, namespaces: named };
  });
}

/** Whether it was there. */
export async function removeTag(client: KubernetesClient, tag: string): Promise<boolean> {
  if ((await read(client, nameOf(tag))) === undefined) return false;
  const roles = ["ClusterRoleBinding", "ClusterRole"].map((kind) => `${collectionOf(kind)}/${nameOf(tag)}`);
  for (const path of [`${collection}/${nameOf(tag)}`, ...roles]) {
    await unlessMissing(client.request({ method: "DELETE", path }));
  }
  return true;
}

async function read(client: KubernetesClient, name: string): Promise<Configuration | undefined> {
  return unlessMissing(client.request<Configuration>({ path: `${collection}/${encodeURIComponent(name)}` }));
}
