// The shop on a cluster, with Tulle's own proxy.
import { shopTests } from "./shop-rules.ts";

shopTests("tulle");
