// The mesh in namespaces mode on a stock Envoy. It takes root.
import { meshTests } from "./mesh-tests.ts";

meshTests({ mode: "namespaces", proxy: "envoy" });
