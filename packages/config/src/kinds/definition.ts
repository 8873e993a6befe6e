/**
 * What is known of a kind besides its fields: its names on the command line, the API versions it is served in, its
 * scope, whose it is and what it affects.
 */
import type { Schema } from "../schema/schema.ts";

export interface KindDefinition<K extends string, T> {
  readonly kind: K;
  readonly plural: string;
  readonly shortNames: readonly string[];
  /** Every `apiVersion` under which manifests may hold the kind. */
  readonly apiVersions: readonly string[];
  readonly scope: "Namespaced" | "Cluster";
  /**
   * What the control plane makes anew when a resource of the kind changes. Endpoints and pods come and go without a
   * route changing.
   */
  readonly affects: "routing" | "endpoints" | "secrets" | "nothing";
  /**
   * Whose the resources are. What the platform writes that runs the pods, it writes often, no analyzer speaks of it,
   * and it lives as long as that platform.
   */
  readonly writtenBy: "user" | "platform";
  /** Everything but `apiVersion` and `kind`. */
  readonly schema: Schema<T>;
  /**
   * What a field that nobody knows means. The mesh's own kinds refuse it, as Istio does. Kubernetes grows fields that
   * are not the mesh's business, so there it is only pointed out.
   */
  readonly unknownField: "error" | "warning";
  readonly description: string;
}

export function defineKind<const K extends string, T>(definition: KindDefinition<K, T>): KindDefinition<K, T> {
  return definition;
}

/** The versions that Istio serves its networking kinds in, under Istio's group and under Tulle's. */
export const networkingApiVersions: readonly string[] = ["networking.tulle.io", "networking.istio.io"].flatMap(
  (group) => ["v1", "v1beta1", "v1alpha3"].map((version) => `${group}/${version}`),
);

/** The versions that Istio serves its security kinds in, under Istio's group and under Tulle's. */
export const securityApiVersions: readonly string[] = ["security.tulle.io", "security.istio.io"].flatMap((group) =>
  ["v1", "v1beta1"].map((version) => `${group}/${version}`),
);

/** The versions that Istio serves Telemetry in, under Istio's group and under Tulle's. */
export const telemetryApiVersions: readonly string[] = ["telemetry.tulle.io", "telemetry.istio.io"].flatMap((group) =>
  ["v1", "v1alpha1"].map((version) => `${group}/${version}`),
);
