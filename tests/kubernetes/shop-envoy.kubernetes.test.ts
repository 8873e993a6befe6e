// The shop on a cluster, with a stock Envoy in each proxy's place.
import { shopTests } from "./shop-rules.ts";

shopTests("envoy");
