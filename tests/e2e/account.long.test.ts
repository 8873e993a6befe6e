// The account page of the shop with a stock Envoy at the gateway and beside every app.
import { describe } from "node:test";
import { accountPageTests } from "./account-page.ts";
import { useRunningShop } from "./running-shop.ts";

describe("the account page on a stock Envoy", () => {
  accountPageTests((take) => useRunningShop("whole, a stock Envoy", take));
});
