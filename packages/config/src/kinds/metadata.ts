/**
 * The metadata that every object carries, as Kubernetes defines it. Labels and annotations decide injection, selection
 * and subsets, so they are checked; bookkeeping of the API server is let through.
 */
import { integer, list, map, object, optional, required, string } from "../schema/schema.ts";
import type { Infer } from "../schema/schema.ts";
import { dnsLabel, dnsSubdomain, namespaceName } from "../schema/formats.ts";
import { labelKey, labelValue } from "../schema/label-formats.ts";

const unread = ["generateName", "managedFields", "selfLink", "deletionGracePeriodSeconds", "finalizers"];

const ownerReference = object(
  {
    apiVersion: required(string(), "API version of the owner."),
    kind: required(string(), "Kind of the owner."),
    name: required(string(), "Name of the owner."),
    uid: optional(string(), "Unique id of the owner."),
  },
  { unread: ["controller", "blockOwnerDeletion"] },
);

const optionalMetadata = {
  namespace: optional(string(namespaceName), "Namespace of the object; `default` when missing."),
  labels: optional(map(string(labelValue), labelKey), "Labels, which selectors choose by."),
  annotations: optional(map(string(), labelKey), "Annotations: settings that nothing selects by."),
  resourceVersion: optional(string(), "Version of the object, set by the store."),
  uid: optional(string(), "Unique id, set by the store."),
  generation: optional(integer({ minimum: 0 }), "Number of changes of the spec, set by the store."),
  creationTimestamp: optional(string(), "When the object was made (RFC 3339), set by the store."),
  deletionTimestamp: optional(string(), "Since when the object is on its way out (RFC 3339), set by the store."),
  ownerReferences: optional(list(ownerReference), "Objects that this one belongs to."),
} as const;

/** Metadata whose name is checked by `name`'s rule: most kinds take a DNS name, Services and Namespaces a DNS label. */
export const subdomainNamedMetadata = object(
  { name: required(string(dnsSubdomain), "Name of the object."), ...optionalMetadata },
  { unread },
);

export const labelNamedMetadata = object(
  { name: required(string(dnsLabel), "Name of the object."), ...optionalMetadata },
  { unread },
);

/** Metadata of a pod template: a name is not needed, the pods get theirs from the Deployment. */
export const templateMetadata = object(
  { name: optional(string(), "Not used: the pods get their names from the owner."), ...optionalMetadata },
  { unread },
);

/** Metadata as the store holds it: the namespace is always there (empty for kinds without one). */
export type ObjectMeta = Infer<typeof subdomainNamedMetadata> & { readonly namespace: string };
