/** The types that follow from the schemas, checked by the compiler: a wrong one is a type error in this file. */
import { test } from "node:test";
import assert from "node:assert/strict";
import type { DestinationRule, HttpRoute, Kind, MeshResource, ResourceOf, Service, StringMatch } from "./index.ts";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function expectType<_ extends true>(): void {
  // Nothing to run: the constraint on the type parameter is the check.
}

test("types follow from the schemas", () => {
  expectType<Equal<StringMatch, { readonly exact?: string; readonly prefix?: string; readonly regex?: string }>>();
  expectType<Equal<NonNullable<HttpRoute["retries"]>["attempts"], number | undefined>>();
  expectType<Equal<Service["spec"]["ports"][number]["protocol"], "TCP" | "UDP" | "SCTP">>();
  expectType<Equal<Service["spec"]["ports"][number]["targetPort"], number | string | undefined>>();
  expectType<Equal<MeshResource["kind"], Kind>>();
  expectType<Equal<ResourceOf<"Gateway">["kind"], "Gateway">>();
  expectType<Equal<MeshResource["metadata"]["namespace"], string>>();
  expectType<
    Equal<
      NonNullable<NonNullable<DestinationRule["spec"]["trafficPolicy"]>["loadBalancer"]>["simple"],
      "UNSPECIFIED" | "LEAST_CONN" | "RANDOM" | "PASSTHROUGH" | "ROUND_ROBIN" | "LEAST_REQUEST" | undefined
    >
  >();
  // A union told apart by `kind`.
  const portsOf = (resource: MeshResource): number =>
    resource.kind === "Service"
      ? resource.spec.ports.length
      : resource.kind === "EndpointSlice"
        ? resource.ports.length
        : 0;
  assert.equal(portsOf({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "a", namespace: "default" } }), 0);
});
