// The routing rules of the sample, with so many calls that chance is told from a mistake of a few percent.
import { describe } from "node:test";
import { routingTests } from "./routing-rules.ts";

describe("the catalog under each rule, many times", () => routingTests({ mode: "loopback", proxy: "tulle" }, 400));
