// The routing rules of the sample on the catalog's gRPC port, beside Tulle's proxy; beside a stock Envoy:
// envoy.long.test.ts.
import { describe } from "node:test";
import { grpcRuleTests } from "./grpc-rules.ts";
import { useRunningShop } from "./running-shop.ts";

describe("the catalog's gRPC port beside Tulle's proxy", () => {
  grpcRuleTests((take) => useRunningShop("Tulle's proxy", take));
});
