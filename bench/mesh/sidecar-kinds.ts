// Whose sidecars are measured under the same manifests.
import type { ProxyKind } from "../../tests/tools/meshed-proxies.ts";
import type { ScenarioOptions } from "../scenario.ts";
import { ownTree, type Tree } from "../tree.ts";

export interface SidecarKind {
  /** The contestant. */
  readonly name: string;
  readonly proxy: ProxyKind;
  /** Its control plane makes the configuration, and its proxy is the one of kind `tulle`. */
  readonly tree: Tree;
}

export function sidecarKinds({ trees, proxies }: ScenarioOptions): readonly SidecarKind[] {
  const all: readonly SidecarKind[] = [
    { name: "Envoy", proxy: "envoy", tree: ownTree },
    ...trees.map((tree) => ({ name: tree.name, proxy: "tulle" as const, tree })),
  ];
  return all.filter(({ name }) => proxies?.includes(name) ?? true);
}
