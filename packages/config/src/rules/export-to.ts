/**
 * For whom a resource is: `exportTo` of VirtualServices and DestinationRules, and the annotation of Services that says
 * the same. Analysis and the control plane ask here alike.
 */

/** Set on a Service: namespaces, joined by commas (Istio's name, and the same under ours). */
export const exportAnnotations: readonly string[] = ["networking.tulle.io/exportTo", "networking.istio.io/exportTo"];

/** The namespaces that see a resource; undefined for all of them. */
export type Exported = readonly string[] | undefined;

/** `.` is the resource's own namespace, `*` all, `~` none; what is not written has the default of the mesh. */
export function exportedTo(
  exportTo: readonly string[] | undefined,
  namespace: string,
  meshDefault: readonly string[] = ["*"],
): Exported {
  const written = exportTo === undefined || exportTo.length === 0 ? meshDefault : exportTo;
  if (written.includes("*")) return undefined;
  const names = written.filter((name) => name !== "~").map((name) => (name === "." ? namespace : name));
  return [...new Set(names)].sort();
}

/** What the annotation of a Service says; an empty one says nothing, as in Istio. */
export function serviceExportTo(
  annotations: Readonly<Record<string, string>> | undefined,
): readonly string[] | undefined {
  const text = exportAnnotations.map((each) => annotations?.[each] ?? "").find((each) => each !== "");
  return text?.split(",").map((each) => each.trim());
}

export function isExportedTo(exported: Exported, namespace: string): boolean {
  return exported === undefined || exported.includes(namespace);
}

/** Whether some namespace sees both. */
export function exportsOverlap(one: Exported, other: Exported): boolean {
  if (one === undefined) return other === undefined || other.length > 0;
  return one.some((namespace) => isExportedTo(other, namespace));
}
