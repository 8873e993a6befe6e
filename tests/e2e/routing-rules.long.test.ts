// The routing rules of the sample, with so many calls that chance is told from a mistake of a few percent.
import { describe } from "node:test";
import { routingRuleTests } from "./routing-rules.ts";
import { useRunningShop } from "./running-shop.ts";

describe("the catalog under each rule, many times", () => {
  routingRuleTests((take) => useRunningShop("Tulle's proxy", take), 400);
});
