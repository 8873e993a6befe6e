// Everything changes under load, on a stock Envoy.
import { changeTests } from "./change-under-load.ts";

changeTests({ mode: "loopback", proxy: "envoy" });
