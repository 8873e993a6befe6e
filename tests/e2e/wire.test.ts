// What passes between two sidecars of Tulle's; of two Envoys: envoy.long.test.ts.
import { describe } from "node:test";
import { useRunningShop } from "./running-shop.ts";
import { wireTests } from "./tls-between-sidecars.ts";

describe("a shop on Tulle's proxy", () => {
  wireTests((take) => useRunningShop("Tulle's proxy", take), { countsSecurity: true });
});
