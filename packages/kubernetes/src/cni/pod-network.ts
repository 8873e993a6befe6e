// The network of a pod that the plug-in was called for: found by the path that the container runtime gives, and by
// nothing that a pod could have put there.
import { lstatSync, statSync, statfsSync } from "node:fs";
import path from "node:path";
import { NetworkNamespace } from "@tulle/capture";

/** Of `nsfs`, the file system of namespaces (linux/magic.h). */
const namespaceFileSystem = 0x6e_73_66_73;
const runtimePath = /^(?:\/var)?\/run\/netns\/([\w.-]+)$/;

/**
 * `folder`: where the runtime's folder of networks is seen from here.
 *
 * @throws {Error} in words for the pod's events
 */
export function openPodNetwork(runtimesPath: string, folder: string): NetworkNamespace {
  const name = runtimePath.exec(runtimesPath)?.[1];
  if (name === undefined || name === "." || name === "..") {
    throw new Error(`the pod's network is at ${JSON.stringify(runtimesPath)}, not in /run/netns`);
  }
  const file = path.join(folder, name);
  if (!lstatSync(file).isFile()) throw new Error(`${file} is no file`);
  if (statfsSync(file).type !== namespaceFileSystem) throw new Error(`${file} is no network`);
  const own = statSync("/proc/self/ns/net");
  const node = statSync(file);
  // What is made there would hold for this whole node.
  if (own.ino === node.ino && own.dev === node.dev) throw new Error(`${file} is the network of the node`);
  return NetworkNamespace.at(file);
}
