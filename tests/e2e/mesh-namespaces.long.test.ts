// The mesh in namespaces mode on Tulle's proxy: what runs on CI of that mode. It takes root.
import { meshTests } from "./mesh-tests.ts";

meshTests({ mode: "namespaces", proxy: "tulle" });
