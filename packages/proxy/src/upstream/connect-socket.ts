// Opens a socket to a host as its cluster says, and names a failure in Envoy's words.
import net from "node:net";
import type { Cluster, Host } from "../cluster/cluster.ts";
import type { DataPath } from "../connection/data-path.ts";

/** `onRead` gets a view on the worker's read buffer that is valid during the call. */
export function connectSocket(
  host: Host,
  cluster: Cluster,
  dataPath: DataPath,
  onRead: (chunk: Buffer) => void,
): net.Socket {
  const { address } = host;
  const target =
    address.type === "pipe"
      ? { path: address.path }
      : { host: address.ip, port: address.port, localAddress: cluster.sourceAddress };
  const options = {
    ...target,
    noDelay: true,
    allowHalfOpen: true,
    highWaterMark: cluster.perConnectionBufferLimitBytes,
    onread: {
      buffer: dataPath.readBuffer,
      callback: (bytes: number): boolean => {
        onRead(dataPath.readView(bytes));
        return true;
      },
    },
  };
  return net.connect(options as net.NetConnectOpts);
}

const errorTexts: Readonly<Record<string, string>> = {
  ECONNREFUSED: "Connection_refused",
  ECONNRESET: "Connection_reset_by_peer",
  ENETUNREACH: "Network_is_unreachable",
  EHOSTUNREACH: "No_route_to_host",
  ETIMEDOUT: "Connection_timed_out",
  ENOENT: "No_such_file_or_directory",
  EACCES: "Permission_denied",
  EADDRNOTAVAIL: "Cannot_assign_requested_address",
  EMFILE: "Too_many_open_files",
};

/**
 * `delayed_connect_error:_Connection_refused`: the system's words with underscores, as Envoy writes them into its access
 * log.
 */
export function transportErrorText(error: NodeJS.ErrnoException | undefined): string {
  const code = error?.code ?? "unknown";
  return `delayed_connect_error:_${errorTexts[code] ?? code}`;
}
