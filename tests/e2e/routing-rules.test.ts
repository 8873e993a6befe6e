// The routing rules of the sample on a running shop; with four times as many calls: routing-rules.long.test.ts.
import { describe } from "node:test";
import { routingRuleTests } from "./routing-rules.ts";
import { useRunningShop } from "./running-shop.ts";

describe("the catalog under each rule", () => {
  routingRuleTests((take) => useRunningShop("Tulle's proxy", take), 100);
});
