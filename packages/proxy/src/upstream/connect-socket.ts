// Opens a socket to a host as its cluster says, plain or with TLS, and names a failure in Envoy's words.
import net from "node:net";
import type { Cluster, Host, TcpKeepAlive } from "../cluster/cluster.ts";
import type { DataPath } from "../worker/data-path.ts";
import { tlsErrorText } from "../tls/transport-failure.ts";
import type { UpstreamSource } from "../http/upstream-source.ts";
import { connectFrom, refusedSocket, sourceRefused } from "./connect-from.ts";
import { connectTls, type TlsConnectOptions } from "./connect-tls.ts";
import { otherUsersHost } from "../own-user/own-user-hosts.ts";

/** Where nothing is known of what the bytes mean. */
const anyBytes: TlsConnectOptions = { serverName: undefined, verifiesServerName: false, defaultProtocols: [] };

/**
 * `onRead` gets a view on the worker's read buffer that is valid during the call. The socket may be written to from
 * `readyEventOf` on. `source`: in the place of an address of this machine.
 */
export function connectSocket(
  host: Host,
  cluster: Cluster,
  dataPath: DataPath,
  onRead: (chunk: Buffer) => void,
  tlsOptions: TlsConnectOptions = anyBytes,
  transport = cluster.transportOf?.(host),
  source?: UpstreamSource,
): net.Socket {
  const { address } = host;
  const target =
    address.type === "pipe"
      ? { path: address.path }
      : { host: address.ip, port: address.port, localAddress: sourceFor(address.ip, cluster.sourceAddresses) };
  const settings = { noDelay: true, allowHalfOpen: true, highWaterMark: cluster.perConnectionBufferLimitBytes };
  const reading = {
    onread: {
      buffer: dataPath.readBuffer,
      callback: (bytes: number): boolean => {
        onRead(dataPath.readView(bytes));
        return true;
      },
    },
  };
  const tlsTransport = transport?.kind === "tls" ? transport : undefined;
  let socket: net.Socket;
  if (source === undefined || address.type === "pipe") {
    const options = { ...target, ...settings, ...reading } as net.NetConnectOpts;
    socket = tlsTransport === undefined ? net.connect(options) : connectTls(host, tlsTransport, tlsOptions, options);
  } else if (tlsTransport === undefined) {
    socket = connectFrom(source, address, { ...settings, ...reading }) ?? refusedSocket();
  } else {
    // Node reads into nobody's buffer where TLS lies over another socket.
    const under = connectFrom(source, address, settings);
    const over = { ...settings, socket: under } as unknown as net.NetConnectOpts;
    socket = under === undefined ? refusedSocket() : connectTls(host, tlsTransport, tlsOptions, over);
    socket.on("data", onRead);
  }
  if (address.type === "ip") dataPath.ownUserHosts?.watch(socket, address);
  if (cluster.tcpKeepAlive !== undefined && address.type === "ip") keepAlive(socket, cluster.tcpKeepAlive);
  return socket;
}

/** Of the host's family; where there is none the first, which fails as in Envoy. */
function sourceFor(ip: string, addresses: readonly string[]): string | undefined {
  return addresses.find((address) => net.isIPv6(address) === net.isIPv6(ip)) ?? addresses[0];
}

/** Linux's own values where the cluster says nothing (tcp_keepalive_time and kin). */
const systemKeepAlive = { idleMs: 7_200_000, intervalMs: 75_000, probes: 9 };

function keepAlive(socket: net.Socket, { idleMs, intervalMs, probes }: TcpKeepAlive): void {
  socket.setKeepAlive({
    enable: true,
    initialDelay: idleMs ?? systemKeepAlive.idleMs,
    interval: intervalMs ?? systemKeepAlive.intervalMs,
    count: probes ?? systemKeepAlive.probes,
  } as unknown as boolean);
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
  [otherUsersHost]: "Host_of_another_user",
};

const localCodes: ReadonlySet<string> = new Set(["EMFILE", "ENFILE", sourceRefused]);

/**
 * Why there is no connection: it began at the host, or already here (Envoy tells a socket that could not be made
 * apart).
 */
export function connectFailure(
  error: NodeJS.ErrnoException | undefined,
): "local_connection_failure" | "remote_connection_failure" {
  return localCodes.has(error?.code ?? "") ? "local_connection_failure" : "remote_connection_failure";
}

/**
 * `delayed_connect_error:_Connection_refused`: the system's words with underscores, as Envoy writes them into its
 * access log.
 */
export function transportErrorText(error: NodeJS.ErrnoException | undefined): string {
  const words = error === undefined ? undefined : tlsErrorText(error);
  if (words !== undefined) return words;
  if (connectFailure(error) === "local_connection_failure") return "socket_creation_failure";
  const code = error?.code ?? "unknown";
  return `delayed_connect_error:_${errorTexts[code] ?? code}`;
}
