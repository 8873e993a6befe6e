// Everything changes under load, on Tulle's proxy in namespaces mode. It takes root.
import { changeTests } from "./change-under-load.ts";

changeTests({ mode: "namespaces", proxy: "tulle" });
