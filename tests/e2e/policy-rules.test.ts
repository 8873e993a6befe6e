// Policies on Tulle's proxy; in other modes and on a stock Envoy: the files of mesh-tests.ts.
import { describe } from "node:test";
import { policyTests } from "./policy-rules.ts";

describe("policies", () => policyTests({ mode: "loopback", proxy: "tulle" }));
