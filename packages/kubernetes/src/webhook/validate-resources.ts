// What the API server is told of a resource of the mesh: refused is what it shows by itself, and what depends on other
// objects, which may come later, is a warning.
import { isDeepStrictEqual } from "node:util";
import { type Finding, keyOf, keyText, type MeshResource, parseResource, type Store } from "@tulle/config";
import type { AdmissionAnswer, AdmissionRequest } from "./admission-review.ts";

export interface ValidateResourcesOptions {
  readonly store: Pick<Store, "all">;
  /** What no schema can see, and would spoil more than the resource itself. */
  readonly check: (resource: MeshResource) => readonly Finding[];
  /** Of all resources as a whole. */
  readonly analyze: (resources: readonly MeshResource[]) => readonly Finding[];
}

/** A mesh that is larger is analyzed when somebody asks for it, not for each change. */
const mostAnalyzed = 20_000;

export function validateResources(options: ValidateResourcesOptions): (request: AdmissionRequest) => AdmissionAnswer {
  return ({ object, oldObject, operation }) => {
    const { resource, findings } = parseResource(object);
    const own = [...findings, ...(resource === undefined ? [] : options.check(resource))];
    const errors = own.filter(({ severity }) => severity === "error");
    const others = own.filter(({ severity }) => severity !== "error");
    // Labels, finalizers and the like: whoever cleans up is not stopped by what was there before.
    const isSpecSame = operation === "UPDATE" && isDeepStrictEqual(object["spec"], oldObject?.["spec"]);
    if (errors.length > 0 && !isSpecSame)
      return { refusal: errors.map(lineOf).join("\n"), warnings: others.map(lineOf) };
    const among = resource === undefined || isSpecSame ? [] : findingsAmong(options, resource);
    return { warnings: [...errors, ...others, ...among].map(lineOf) };
  };
}

function findingsAmong({ store, analyze }: ValidateResourcesOptions, resource: MeshResource): readonly Finding[] {
  const all = store.all();
  if (all.length > mostAnalyzed) return [];
  const key = keyText(keyOf(resource));
  const others = all.filter((each) => keyText(keyOf(each)) !== key);
  const ofIt = (finding: Finding): boolean => finding.resource !== undefined && keyText(finding.resource) === key;
  return analyze([...others, resource]).filter((finding) => ofIt(finding) && finding.severity !== "info");
}

function lineOf({ code, path, message, suggestion }: Finding): string {
  const where = path === undefined ? "" : `${path}: `;
  return `[${code}] ${where}${message}${suggestion === undefined ? "" : `. ${suggestion}`}`;
}
