// A process of its own for the tests of inherited descriptors: answers "inherited", or its argument, on what takes the
// place of port 8080, says when it accepts, drains when something comes on its standard input, and ends with that.
import { Logging } from "@tulle/telemetry";
import { DataPath } from "../worker/data-path.ts";
import { parseListenDescriptors } from "../listener/inherited-descriptors.ts";
import { ListenerHost } from "../listener/listener-host.ts";
import { handBuiltConnectionManager, handBuiltListener, prefixRoutes } from "./hand-built-runtime.ts";

const host = new ListenerHost({
  dataPath: new DataPath({ logging: new Logging({ level: "off" }) }),
  inheritedDescriptors: parseListenDescriptors(process.env["TULLE_LISTEN_FDS"]),
});
const routes = prefixRoutes({
  "/": {
    type: "direct",
    status: 200,
    body: Buffer.from(process.argv[2] ?? "inherited"),
    finalizeResponse: () => undefined,
  },
});
const fault = await host.apply(handBuiltListener(handBuiltConnectionManager(routes, { log: () => undefined }), 8080));
process.stdout.write(fault ?? "accepting");
process.stdin.on("end", () => process.exit(0));
process.stdin.on(
  "data",
  () => void host.drain({ leastMs: 0, mostMs: 10_000 }).then(() => process.stdout.write(", drained")),
);
