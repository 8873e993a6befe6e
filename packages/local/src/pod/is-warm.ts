// Whether a proxy serves all that it has accepted. It acknowledges clusters and listeners before it serves them: they
// warm until their endpoints, routes and secrets have come.
import { getText } from "../get-text.ts";
import type { AskedProxy } from "./until-quiet.ts";

const adminPort = 15_000;
/** Envoy's gauges, which Tulle's proxy has too. */
const warmingPath = `/stats?filter=${encodeURIComponent("^(cluster_manager.warming_clusters|listener_manager.total_listeners_warming)$")}`;

/** @throws when its proxy does not answer */
export async function isWarm({ proxyAt, connect }: AskedProxy): Promise<boolean> {
  const lines = (await getText(`http://${proxyAt}:${adminPort}${warmingPath}`, connect)).split("\n");
  return lines.every((line) => line === "" || line.endsWith(": 0"));
}
