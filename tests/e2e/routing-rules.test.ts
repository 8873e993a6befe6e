// The routing rules of the sample on Tulle's proxy; with four times as many calls: routing-rules.long.test.ts; in other
// modes and on a stock Envoy: the files of mesh-tests.ts.
import { describe } from "node:test";
import { routingTests } from "./routing-rules.ts";

describe("the catalog under each rule", () => routingTests({ mode: "loopback", proxy: "tulle" }, 100));
