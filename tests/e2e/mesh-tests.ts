// All that a mesh is for, in one of its four variants, on one shop: routing and retries by HTTP and by gRPC, mutual
// TLS, policies. What it does while everything changes is in change-under-load.ts, on a shop with two of everything.
import { describe } from "node:test";
import { grpcRuleTests } from "./grpc-rules.ts";
import { type MeshVariant, variantName } from "./mesh-variant.ts";
import { policyTests } from "./policy-rules.ts";
import { routingTests } from "./routing-rules.ts";
import { wireTests } from "./tls-between-sidecars.ts";

export function meshTests(variant: MeshVariant): void {
  describe(`a shop on ${variantName(variant)}`, () => {
    describe("the catalog under each rule", () => routingTests(variant, 100));
    describe("the catalog's gRPC port", () => grpcRuleTests(variant));
    describe("policies", () => policyTests(variant));
    describe("what passes between sidecars", () => wireTests(variant));
  });
}
