/**
 * TUL0013: a program of this machine sees its files. Nothing can be mounted for one program alone without a mount
 * namespace, so that what a volume would hold has to be given in another way.
 */
import type { Analyzer } from "./analyzer.ts";

/** A volume's source → what it is to a person, and what to do instead. */
const sources: Readonly<Record<string, readonly [what: string, suggestion: string]>> = {
  configMap: [
    "of a ConfigMap",
    "Take its texts as variables (envFrom, configMapKeyRef), or keep the files beside the manifest and name their path in the command or in a variable.",
  ],
  secret: [
    "of a Secret",
    "Take its values as variables (envFrom, secretKeyRef), or name the path of files of your own in the command or in a variable.",
  ],
  emptyDir: [
    "emptyDir",
    "Name a folder of this machine in the command or in a variable; one that several pods write to is shared by them.",
  ],
  projected: [
    "projected",
    "Take what it holds as variables (envFrom, valueFrom), or name the path of files of your own in the command or in a variable.",
  ],
  downwardAPI: ["downwardAPI", "Take the fields as variables (valueFrom.fieldRef, valueFrom.resourceFieldRef)."],
};
const elsewhere = "Name the path of a folder of this machine in the command or in a variable.";

export const localVolumes: Analyzer = {
  name: "local-volumes",
  codes: ["TUL0013"],
  *run(mesh) {
    if (mesh.options.networkMode !== "loopback") return;
    for (const resource of mesh.list("Deployment")) {
      const { spec } = resource.spec.template;
      const volumes = recordsOf(spec, "volumes");
      for (const [index, container] of spec.containers.entries()) {
        for (const [at, { name, mountPath }] of recordsOf(container, "volumeMounts").entries()) {
          const volume = volumes.find((each) => each["name"] === name) ?? {};
          const source = Object.keys(volume).find((field) => field !== "name") ?? "";
          const [what, suggestion] = Object.hasOwn(sources, source) ? sources[source]! : [source, elsewhere];
          const id = `the volume ${JSON.stringify(name)}${what === "" ? "" : ` (${what})`}`;
          yield {
            code: "TUL0013",
            resource,
            path: ["spec", "template", "spec", "containers", index, "volumeMounts", at],
            message: `container "${container.name}" finds nothing of ${id} at ${String(mountPath)}: volumes are not mounted here, the program sees this machine's own files`,
            suggestion,
          };
        }
      }
    }
  },
};

/** A list of objects in a field that the mesh does not look at otherwise, and whose form nobody has checked. */
function recordsOf(holder: object, field: string): readonly Readonly<Record<string, unknown>>[] {
  const value = (holder as Readonly<Record<string, unknown>>)[field];
  if (!Array.isArray(value)) return [];
  return value.map((each: unknown) => (typeof each === "object" && each !== null ? { ...each } : {}));
}
