// The routing rules of the sample on the catalog's gRPC port, beside Tulle's proxy; in other modes and beside a stock
// Envoy: the files of mesh-tests.ts.
import { describe } from "node:test";
import { grpcRuleTests } from "./grpc-rules.ts";

describe("the catalog's gRPC port beside Tulle's proxy", () => grpcRuleTests({ mode: "loopback", proxy: "tulle" }));
