// What passes between two sidecars of Tulle's; in other modes and of two Envoys: the files of mesh-tests.ts.
import { describe } from "node:test";
import { wireTests } from "./tls-between-sidecars.ts";

describe("a shop on Tulle's proxy", () => wireTests({ mode: "loopback", proxy: "tulle" }));
