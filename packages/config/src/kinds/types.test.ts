/** The types that follow from the schemas, checked by the compiler: a wrong one is a type error in this file. */
import { test } from "node:test";
import assert from "node:assert/strict";
import type { DestinationRule, HttpRoute, Kind, MeshResource, ResourceOf, Service, StringMatch } from "../index.ts";

type IsAny<T> = 0 extends 1 & T ? true : false;
type Equal<A, B> = IsAny<A> extends true ? false : [A] extends [B] ? ([B] extends [A] ? true : false) : false;

type LoadBalancer = NonNullable<NonNullable<DestinationRule["spec"]["trafficPolicy"]>["loadBalancer"]>;

test("types follow from the schemas", () => {
  const checks: readonly true[] = [
    true satisfies Equal<StringMatch, { readonly exact?: string; readonly prefix?: string; readonly regex?: string }>,
    true satisfies Equal<NonNullable<HttpRoute["retries"]>["attempts"], number | undefined>,
    true satisfies Equal<Service["spec"]["ports"][number]["protocol"], "TCP" | "UDP" | "SCTP">,
    true satisfies Equal<Service["spec"]["ports"][number]["targetPort"], number | string | undefined>,
    true satisfies Equal<MeshResource["kind"], Kind>,
    true satisfies Equal<ResourceOf<"Gateway">["kind"], "Gateway">,
    true satisfies Equal<MeshResource["metadata"]["namespace"], string>,
    true satisfies Equal<
      LoadBalancer["simple"],
      "UNSPECIFIED" | "LEAST_CONN" | "RANDOM" | "PASSTHROUGH" | "ROUND_ROBIN" | "LEAST_REQUEST" | undefined
    >,
  ];
  assert.equal(checks.length, 8);
  // A union told apart by `kind`.
  const portsOf = (resource: MeshResource): number =>
    resource.kind === "Service"
      ? resource.spec.ports.length
      : resource.kind === "EndpointSlice"
        ? resource.ports.length
        : 0;
  assert.equal(portsOf({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "a", namespace: "default" } }), 0);
});
