// A process of its own for the tests of inherited descriptors: answers its first argument at `<address>:<port>`, its
// second and third, and on what it inherits for that port; says when it accepts, logs warnings on standard error,
// drains when something comes on its standard input, and ends with that.
import { Logging, textSink } from "@tulle/telemetry";
import { parseListenDescriptors } from "@tulle/listening";
import { DataPath } from "../worker/data-path.ts";
import { ListenerHost } from "../listener/listener-host.ts";
import { handBuiltConnectionManager, handBuiltListener, prefixRoutes } from "./hand-built-runtime.ts";

const [, , answer = "", ip = "", port = ""] = process.argv;
const host = new ListenerHost({
  dataPath: new DataPath({
    logging: new Logging({ level: "warning", sink: textSink((line) => void process.stderr.write(line)) }),
  }),
  inheritedDescriptors: parseListenDescriptors(process.env["TULLE_LISTEN_FDS"]),
});
const routes = prefixRoutes({
  "/": {
    type: "direct",
    status: 200,
    body: Buffer.from(answer),
    finalizeResponse: () => undefined,
  },
});
const listener = handBuiltListener(handBuiltConnectionManager(routes, { log: () => undefined }));
const fault = await host.apply({ ...listener, addresses: [{ ip, port: Number(port) }] });
process.stdout.write(fault ?? "accepting");
process.stdin.on("end", () => process.exit(0));
process.stdin.on(
  "data",
  () => void host.drain({ leastMs: 0, mostMs: 10_000 }).then(() => process.stdout.write(", drained")),
);
