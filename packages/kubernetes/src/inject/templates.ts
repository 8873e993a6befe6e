// Templates that an operator adds: a part of a pod in YAML that is laid over pods which name it
// (`inject.istio.io/templates: sidecar,custom`). Istio's are programs in Go's template language; those are refused.
import { parseDocuments } from "@tulle/config";
import { mergePods } from "./merge-pods.ts";
import { isPlainObject, type PlainObject } from "./plain-object.ts";
import type { Pod } from "./pod.ts";

/** Made here; a template of the same name is not looked at. */
export const ownTemplates = ["sidecar", "gateway"] as const;

/**
 * `proxyName`: the pod's proxy, which a template may name as Istio does and find among the init containers.
 * @throws {Error} with a sentence's end about the template
 */
export function applyTemplate(pod: Pod, text: string, proxyName: string | undefined): Pod {
  if (text.includes("{{")) throw new Error("is written in Go's template language, which is not read: write it as YAML");
  const { documents, findings } = parseDocuments(text, "template");
  const [found] = findings.filter(({ severity }) => severity === "error");
  if (found !== undefined) throw new Error(`is no YAML: ${found.message}`);
  const overlay = documents[0]?.value;
  if (documents.length !== 1 || !isPlainObject(overlay)) throw new Error("is not one object of metadata and spec");
  const { metadata = {}, spec = {} } = overlay;
  if (!isPlainObject(metadata) || !isPlainObject(spec)) throw new Error("is not one object of metadata and spec");
  try {
    return mergePods(pod, { metadata, spec: proxyName === undefined ? spec : withProxy(spec, pod, proxyName) });
  } catch (error) {
    throw new Error(`cannot be laid over the pod: ${(error as Error).message}`, { cause: error });
  }
}

function withProxy(spec: PlainObject, pod: Pod, proxyName: string): PlainObject {
  const { containers, ...others } = spec;
  if (!Array.isArray(containers)) return spec;
  const isProxy = (each: unknown): each is PlainObject =>
    isPlainObject(each) && (each["name"] === proxyName || each["name"] === "istio-proxy");
  const proxies = containers.filter(isProxy).map((each) => ({ ...each, name: proxyName }));
  const rest = containers.filter((each) => !isProxy(each));
  const isInit = pod.spec.initContainers?.some(({ name }) => name === proxyName) === true;
  if (!isInit) return { ...spec, containers: [...rest, ...proxies] };
  const init = Array.isArray(spec["initContainers"]) ? (spec["initContainers"] as unknown[]) : [];
  return { ...others, ...(rest.length > 0 ? { containers: rest } : {}), initContainers: [...init, ...proxies] };
}

export function templateProblem(name: string, templates: Readonly<Record<string, string>>): string | undefined {
  const known = [...ownTemplates, ...Object.keys(templates)];
  if (known.includes(name)) return undefined;
  return `there is no template ${JSON.stringify(name)}: there are ${known.join(", ")}`;
}
