// Everything changes under load, on Tulle's proxy.
import { changeTests } from "./change-under-load.ts";

changeTests({ mode: "loopback", proxy: "tulle" });
