// The account page of the shop with Tulle's proxy at the gateway; with a stock Envoy: account.long.test.ts.
import { describe } from "node:test";
import { accountPageTests } from "./account-page.ts";
import { useRunningShop } from "./running-shop.ts";

describe("the account page on Tulle's proxy", () => {
  accountPageTests((take) => useRunningShop("whole, Tulle's proxy", take));
});
