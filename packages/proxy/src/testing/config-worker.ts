// A data path in a thread of its own, which is told its configuration by messages: updates in, verdicts and needs out.
import { parentPort } from "node:worker_threads";
import { systemClock } from "@tulle/timing";
import { Logging, MetricRegistry } from "@tulle/telemetry";
import { parseListenDescriptors } from "@tulle/listening";
import { AppliedConfig } from "../apply/applied-config.ts";
import type { ConfigUpdate } from "../apply/config-update.ts";
import { CheckQueue } from "../cluster/health-check/check-queue.ts";
import { detachedScope } from "../fields/compile-scope.ts";
import { ListenerHost } from "../listener/listener-host.ts";
import { ConfigRecords } from "../runtime/config-records.ts";
import { RuntimeOwner } from "../runtime/runtime-owner.ts";
import { DataPath } from "../worker/data-path.ts";

/** What the thread is sent. */
export type ToWorker = { readonly update: ConfigUpdate } | { readonly end: true };
/** What it says: the names that are needed, stages that are warm, and for each update where listeners are now. */
export type FromWorker =
  | { readonly needs: "EDS" | "RDS"; readonly names: ReadonlySet<string> }
  | { readonly warm: string }
  | {
      readonly verdict: readonly { readonly name: string; readonly message: string }[];
      readonly ports: readonly number[];
    };

const port = parentPort!;
const tell = (message: FromWorker): void => port.postMessage(message);
const logging = new Logging({ level: "off" });
const dataPath = new DataPath({ logging });
const listenerHost = new ListenerHost({
  dataPath,
  inheritedDescriptors: parseListenDescriptors(""),
});
const owner = new RuntimeOwner({
  listenerHost,
  healthChecks: new CheckQueue(dataPath),
  drainTimeMs: 0,
  metrics: new MetricRegistry(),
});
const config = new AppliedConfig({
  owner,
  records: new ConfigRecords(),
  scope: detachedScope({
    logging,
    clusterSlot: (name) => owner.clusterSlots.get(name),
    routeTableSlot: (name) => owner.routeTableSlots.get(name),
  }),
  clock: systemClock,
  clustersTimeoutMs: 0,
  isInheritedPort: () => false,
  secrets: { need: () => undefined, onChange: () => undefined },
  events: {
    onNeeds: (needs, names) => tell({ needs, names }),
    onWarm: (warm) => tell({ warm }),
  },
});

port.on("message", async (message: ToWorker) => {
  if ("end" in message) {
    config.close();
    owner.stopClusters();
    await listenerHost.stop();
    port.close();
    return;
  }
  const verdict = await config.apply(message.update);
  const ports = [...listenerHost.boundAddresses().values()].flat().map((address) => address.port);
  tell({ verdict, ports });
});
