// A pod of Kubernetes tells its agent what it is in Kubernetes' own ways: variables that the kubelet fills in, Istio's
// `ISTIO_META_…`, and the files of a downwardAPI volume. Here, and nowhere else, they become the settings' own.
import { readFileSync } from "node:fs";
import path from "node:path";
import { parseDownwardFile } from "@tulle/capture";

type Environment = Readonly<Record<string, string | undefined>>;

/** The folder of the volume with the pod's `labels` and `annotations`. */
const folderVariable = "TULLE_POD_INFO";
const textPrefix = "ISTIO_META_";
const jsonPrefix = "ISTIO_METAJSON_";

/**
 * The environment with TULLE_NODE_METADATA filled in; what that has already comes first. As it is where there is no
 * such volume. @throws {Error} where the volume cannot be read, in words for the log
 */
export function podEnvironment(env: Environment): Environment {
  const folder = env[folderVariable] ?? "";
  if (folder === "") return env;
  const read = (name: string, isWanted?: (name: string) => boolean): Readonly<Record<string, string>> => {
    const file = path.join(folder, name);
    try {
      return parseDownwardFile(readFileSync(file, "utf8"), isWanted);
    } catch (error) {
      throw new Error(`${folderVariable}: ${file}: ${(error as Error).message}`, { cause: error });
    }
  };
  const addresses = env["POD_IPS"] || env["INSTANCE_IP"];
  const metadata = {
    ...(addresses === undefined ? {} : { INSTANCE_IPS: addresses }),
    ...(env["NODE_NAME"] === undefined ? {} : { NODE_NAME: env["NODE_NAME"] }),
    LABELS: read("labels"),
    ANNOTATIONS: read("annotations", isOfMesh),
    ...ofVariables(env),
    ...parseObject("TULLE_NODE_METADATA", env["TULLE_NODE_METADATA"] || "{}"),
  };
  return { ...env, TULLE_NODE_METADATA: JSON.stringify(metadata) };
}

/** Others are nobody's here, and may have 256 KiB; what was injected is known. */
function isOfMesh(annotation: string): boolean {
  return /(?:^|\.)(?:istio|tulle)\.io\//.test(annotation) && !annotation.endsWith("/status");
}

function ofVariables(env: Environment): Readonly<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  for (const [name, value = ""] of Object.entries(env)) {
    if (name.startsWith(textPrefix)) found[name.slice(textPrefix.length)] = value;
    else if (name.startsWith(jsonPrefix)) Object.assign(found, parseObject(name, value));
  }
  return found;
}

function parseObject(name: string, text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Told below, like any other text that is no object.
  }
  throw new Error(`${name} is no JSON object`);
}
