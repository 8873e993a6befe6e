/**
 * TUL0012: a program of this machine is given variables with a value of their own and fields of its pod; what comes from ConfigMaps,
 * Secrets and limits of resources is left out.
 */
import type { Analyzer } from "./analyzer.ts";

const suggestion = "Give it a value, or set it for tulle up: programs inherit its environment.";

export const localVariables: Analyzer = {
  name: "local-variables",
  codes: ["TUL0012"],
  *run(mesh) {
    if (mesh.options.networkMode !== "loopback") return;
    for (const resource of mesh.list("Deployment")) {
      for (const [index, container] of resource.spec.template.spec.containers.entries()) {
        const path = ["spec", "template", "spec", "containers", index];
        for (const [at, { name, valueFrom }] of (container.env ?? []).entries()) {
          if (valueFrom === undefined || valueFrom.fieldRef !== undefined) continue;
          yield {
            code: "TUL0012",
            resource,
            path: [...path, "env", at, "valueFrom"],
            message: `the variable ${name} of container "${container.name}" is not set: of valueFrom only fieldRef is read here`,
            suggestion,
          };
        }
        if (!("envFrom" in container) || container.envFrom === undefined) continue;
        yield {
          code: "TUL0012",
          resource,
          path: [...path, "envFrom"],
          message: `envFrom of container "${container.name}" has no effect here`,
          suggestion: "Write the variables into env, or set them for tulle up: programs inherit its environment.",
        };
      }
    }
  },
};
