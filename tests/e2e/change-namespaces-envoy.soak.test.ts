// Everything changes under load, on a stock Envoy in namespaces mode. It takes root.
import { changeTests } from "./change-under-load.ts";

changeTests({ mode: "namespaces", proxy: "envoy" });
