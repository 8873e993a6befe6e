// What hosts are spoken to in: what their cluster says, or what the client speaks.
import type { Cluster, UpstreamProtocol } from "../cluster/cluster.ts";
import type { Protocol } from "../http/message.ts";

/** `downstream` is the client's. */
export function protocolFor({ protocol }: Pick<Cluster, "protocol">, downstream: Protocol): UpstreamProtocol {
  if (protocol !== "downstream") return protocol;
  return downstream === "HTTP/2" ? downstream : "HTTP/1.1";
}
