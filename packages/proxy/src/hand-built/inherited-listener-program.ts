// A process of its own for the test of inherited descriptors: answers "inherited" on what takes the place of port 8080, says
// when it accepts, and ends with its standard input.
import { Logging } from "@tulle/telemetry";
import { DataPath } from "../connection/data-path.ts";
import { parseListenDescriptors } from "../listener/inherited-descriptors.ts";
import { ListenerHost } from "../listener/listener-host.ts";
import { handBuiltConnectionManager, handBuiltListener, prefixRoutes } from "./hand-built-runtime.ts";

const host = new ListenerHost({
  dataPath: new DataPath({ logging: new Logging({ level: "off" }) }),
  inheritedDescriptors: parseListenDescriptors(process.env["TULLE_LISTEN_FDS"]),
});
const routes = prefixRoutes({
  "/": { type: "direct", status: 200, body: Buffer.from("inherited"), finalizeResponse: () => undefined },
});
const fault = await host.apply(handBuiltListener(handBuiltConnectionManager(routes, { log: () => undefined }), 8080));
process.stdout.write(fault ?? "accepting");
process.stdin.on("end", () => process.exit(0)).resume();
