// What is installed, a chart a part, in the order in which each needs the one before.
import { valuesOf } from "./check-values.ts";
import { authorizationServerManifests } from "./authorization-server.ts";
import { baseManifests } from "./base.ts";
import { cniManifests } from "./cni.ts";
import { evaluateManifests, type Release } from "./evaluate.ts";
import { gatewayManifests } from "./gateway.ts";
import type { InstalledObject } from "./object-kinds.ts";
import type { Manifest } from "./template.ts";
import { tulledManifests } from "./tulled.ts";
import type { ComponentName, Fields, Values } from "./values.ts";

export interface Component {
  readonly name: ComponentName;
  readonly description: string;
  readonly manifests: () => readonly Manifest[];
}

export const components: readonly Component[] = [
  { name: "base", description: "The mesh's kinds and what is one for all revisions", manifests: baseManifests },
  { name: "tulled", description: "Tulle's control plane", manifests: tulledManifests },
  { name: "cni", description: "Tulle's network plug-in, which captures pods", manifests: cniManifests },
  { name: "gateway", description: "A gateway of a Tulle mesh", manifests: gatewayManifests },
  {
    name: "authorization-server",
    description: "Tulle's OAuth 2.0 and OpenID Connect server",
    manifests: authorizationServerManifests,
  },
];

/** Objects of the parts that the values enable. */
function installedObjects(release: Release): readonly InstalledObject[] {
  return components
    .filter(({ name }) => release.values[name]?.["enabled"] === true)
    .flatMap(({ manifests }) => evaluateManifests(manifests(), release) as readonly InstalledObject[]);
}

export interface Installation {
  readonly values: Values;
  readonly objects: readonly InstalledObject[];
  /** What is wrong with the values; objects are good where there is none. */
  readonly problems: readonly string[];
}

/** What comes of values; of two that contradict each other the later wins. */
export function evaluateInstallation(given: readonly Fields[], namespace: string): Installation {
  const { values, problems } = valuesOf(given);
  return { values, problems, objects: problems.length === 0 ? installedObjects({ namespace, values }) : [] };
}
