// One HTTP/2 connection to a host of a cluster, plain or with TLS as the cluster says, for gRPC of the proxy's own:
// calls of authorizers and streams of configuration. Who answers is judged before a byte goes out, as for any upstream.
import http2 from "node:http2";
import net from "node:net";
import { countConnection } from "./cluster-load.ts";
import type { Cluster, Host } from "../cluster/cluster.ts";
import type { DataPath } from "../worker/data-path.ts";
import { CallbackTimer } from "../worker/timer-wheel.ts";
import { connectTls } from "./connect-tls.ts";
import type { Http2KeepAlive } from "../codec/http2/http2-options.ts";
import { keepAlive } from "./http2-keep-alive.ts";

/** Of a stream and of the connection: a push of some hundred kilobytes needs few round trips. */
const windowBytes = 1024 * 1024;

/** Above what a window and a message being put together may hold; Node ends the session beyond it. */
const maxSessionMegabytes = 128;

/**
 * The session reports a failure by `error` and `close`; calls made before it stands wait for it. `pings` unless the
 * cluster has its own.
 */
export function openHttp2Session(
  host: Host,
  cluster: Cluster,
  dataPath: DataPath,
  pings?: Http2KeepAlive,
): http2.ClientHttp2Session {
  const { stats } = cluster;
  const { address } = host;
  const target: net.NetConnectOpts =
    address.type === "pipe"
      ? { path: address.path }
      : {
          host: address.ip,
          port: address.port,
          noDelay: true,
          ...(cluster.sourceAddress === undefined ? {} : { localAddress: cluster.sourceAddress }),
        };
  const transport = cluster.transportOf?.(host);
  const tlsOptions = { serverName: undefined, verifiesServerName: false, defaultProtocols: ["h2"] };
  const socket = transport?.kind === "tls" ? connectTls(host, transport, tlsOptions, target) : net.connect(target);
  stats.upstreamConnectionsTotal.increment();
  countConnection(cluster, 1);
  const scheme = transport?.kind === "tls" ? "https" : "http";
  if (address.type === "ip") dataPath.ownUserHosts?.watch(socket, address);
  // Before the session's own listener: it would take hold of a socket that is gone because its peer was refused, and
  // Node would abort.
  const unlessRefused = (): void => void (socket.destroyed && session.destroy(socket.errored ?? undefined));
  socket.once("connect", unlessRefused).once("secureConnect", unlessRefused);
  const session = http2.connect(`${scheme}://grpc.invalid`, {
    createConnection: () => socket,
    settings: { enablePush: false, initialWindowSize: windowBytes },
    maxSessionMemory: maxSessionMegabytes,
  });
  // Of itself a session waits until its last frame is written, for ever where TLS has ended already.
  const cut = (error: Error): void => {
    session.destroy(error);
    socket.destroy();
  };
  socket.once("error", cut);
  const timer = new CallbackTimer(() => cut(new Error("it did not answer in time")));
  if (cluster.connectTimeoutMs > 0) dataPath.timers.arm(timer, cluster.connectTimeoutMs, dataPath.turn.nowMs);
  session.once("connect", () => {
    if (!session.destroyed) session.setLocalWindowSize(windowBytes);
  });
  // A kernel accepts connections for a program that is stopped: only the server's first frame (RFC 9113 §3.4) says that
  // somebody is there.
  session.once("remoteSettings", () => {
    dataPath.timers.disarm(timer);
    const settings = cluster.http2.keepAlive ?? pings;
    if (settings !== undefined && !session.destroyed)
      keepAlive(session, settings, () => cut(new Error("the server answers no pings")));
  });
  // Calls hear of it themselves.
  session.on("error", () => stats.upstreamConnectFailures.increment());
  session.once("close", () => {
    dataPath.timers.disarm(timer);
    countConnection(cluster, -1);
  });
  // It is the listeners that keep the process alive.
  session.unref();
  return session;
}
