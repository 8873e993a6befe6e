// One gRPC connection of a client: how a target's name becomes a channel, in the clear, over a Unix socket or over TLS.
import { type PeerCertificate, checkServerIdentity, createSecureContext } from "node:tls";
import type { ChannelCredentials, ChannelOptions, Client } from "@grpc/grpc-js";
import { loadGrpc } from "./load-grpc.ts";
import { type ClientTls, minTlsVersion } from "./transport-security.ts";

/** `http://host:port`, `https://host:port` (with TLS) or `unix:/path`. */
export type AdsTarget = string;

export interface ChannelLimits {
  readonly maxMessageBytes: number;
  readonly keepAliveIntervalMs: number;
  readonly keepAliveTimeoutMs: number;
}

/** @throws if the target is of no known form, or TLS is given to one that does not speak it or missing where it does */
export async function openChannel(
  target: AdsTarget,
  limits: ChannelLimits,
  tls: ClientTls | undefined,
): Promise<Client> {
  const grpc = await loadGrpc();
  const name = grpcTarget(target, tls !== undefined);
  const secure = (to: ClientTls): ChannelCredentials =>
    grpc.credentials.createFromSecureContext(
      createSecureContext({
        ca: to.rootsPem,
        minVersion: minTlsVersion,
        ...(to.identity === undefined ? {} : { key: to.identity.privateKeyPem, cert: to.identity.certChainPem }),
      }),
      { checkServerIdentity: (_host: string, peer: PeerCertificate) => checkServerIdentity(to.serverName, peer) },
    );
  const credentials = tls === undefined ? grpc.credentials.createInsecure() : secure(tls);
  return new grpc.Client(name, credentials, channelOptions(target, limits, tls));
}

function channelOptions(target: AdsTarget, limits: ChannelLimits, tls: ClientTls | undefined): ChannelOptions {
  const keepAlive = {
    "grpc.keepalive_time_ms": limits.keepAliveIntervalMs,
    "grpc.keepalive_timeout_ms": limits.keepAliveTimeoutMs,
  };
  return {
    "grpc.max_receive_message_length": limits.maxMessageBytes,
    "grpc.max_send_message_length": limits.maxMessageBytes,
    // A subchannel shared with an earlier try would bring that one's back-off along.
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_http_proxy": 0,
    "grpc.service_config_disable_resolution": 1,
    ...(target.startsWith("unix:") ? {} : keepAlive),
    ...(tls === undefined
      ? {}
      : { "grpc.ssl_target_name_override": tls.serverName, "grpc.default_authority": tls.serverName }),
  };
}

/** gRPC's name for a target. */
function grpcTarget(target: AdsTarget, isSecure: boolean): string {
  if (target.startsWith("unix:") && !isSecure) return target;
  const wanted = isSecure ? "https://host:port, because TLS is asked for" : "http://host:port or unix:/path";
  if (!URL.canParse(target)) throw new Error(`${target}: expected ${wanted}`);
  const url = new URL(target);
  if (url.protocol !== (isSecure ? "https:" : "http:")) throw new Error(`${target}: expected ${wanted}`);
  const defaultPort = isSecure ? "443" : "80";
  return `${url.hostname}:${url.port === "" ? defaultPort : url.port}`;
}
