// The one parameter of the suites that run in both modes of `tulle up` and on both proxies.
import { waitFor } from "../tools/processes.ts";

export interface MeshVariant {
  readonly mode: "loopback" | "namespaces";
  /** Beside every app, and as the gateway. */
  readonly proxy: "tulle" | "envoy";
}

/** As a title says it. */
export function variantName({ mode, proxy }: MeshVariant): string {
  return `${proxy === "tulle" ? "Tulle's proxy" : "a stock Envoy"}${mode === "loopback" ? "" : ", in namespaces mode"}`;
}

/** Of `tulle up`. */
export function variantArgs({ mode, proxy }: MeshVariant): readonly string[] {
  return ["--mode", mode, "--proxy", proxy];
}

/** An Envoy may have acknowledged what its workers are yet to hear of. Tulle's proxy has it then: no wait. */
export async function untilTaken({ proxy }: MeshVariant, isTaken: () => Promise<boolean>): Promise<void> {
  if (proxy === "envoy") await waitFor(isTaken, { what: "Envoy's workers to have what it has acknowledged" });
}
