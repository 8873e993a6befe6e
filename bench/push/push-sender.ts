// Runs on the load's core, behind everything there: a control plane that sends ten thousand other routes at each
// SIGUSR2, and prints how long it took until they were acknowledged. In the bench's own process it held up load and
// back end by some milliseconds, which looked like the proxy's. Arguments: the stream's socket, the listener's port,
// its access log, how many pushes there will be.
import { encodeResource, serveAds } from "@tulle/xds";
import { ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { messageFromJson } from "@tulle/xds/json";
import { waitFor } from "../../tests/tools/processes.ts";
import { listener } from "../one-proxy/bootstrap.ts";
import { routeName, routes } from "./routes.ts";

const [xdsPath = "", port = "", accessLogFile = "", pushCount = ""] = process.argv.slice(2);

function listeners(): ReturnType<typeof routes> {
  const rds = { config_source: { ads: {}, resource_api_version: "V3" }, route_config_name: routeName };
  const read = messageFromJson(ListenerSchema, listener(Number(port), accessLogFile, { rds }));
  if (!read.ok) throw new Error(read.problems[0]?.message);
  return new Map([[read.message.name, encodeResource(ListenerSchema, read.message)]]);
}

// Made beforehand: to make one takes longer than to send it.
const pushes = Array.from({ length: Number(pushCount) + 1 }, (_, version) => routes(version));
let sent = 0;
const server = await serveAds({
  address: { path: xdsPath },
  handlers: {
    onConnect: (connection) => {
      connection.set("LDS", listeners());
      connection.set("RDS", pushes[0]!);
      process.on("SIGUSR2", () => {
        sent += 1;
        const push = pushes[sent]!;
        const startMs = performance.now();
        connection.set("RDS", push);
        const { version } = push.get(routeName)!;
        void waitFor(() => connection.status().get("RDS")?.ackedVersion === version, {
          what: "the push to be taken",
          timeoutMs: 30_000,
          details: () => JSON.stringify(connection.status().get("RDS")),
        }).then(() => process.stdout.write(`push ${sent} was taken after ${performance.now() - startMs} ms\n`));
      });
    },
    onSubscribe: () => undefined,
    onDisconnect: () => undefined,
  },
});
process.stdout.write(`serves ${JSON.stringify(server.address)}\n`);
