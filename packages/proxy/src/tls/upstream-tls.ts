// TLS towards the hosts of a cluster, compiled (UpstreamTlsContext), and the sessions that make the next handshake with
// a host cheap.
import type { X509Certificate } from "node:crypto";
import type { Host } from "../cluster/cluster.ts";
import type { CommonTlsContext, TlsMaterial } from "./common-tls-context.ts";
import type { TlsStats } from "./tls-stats.ts";

export type UpstreamTransport = { readonly kind: "raw" } | UpstreamTls;

export const rawTransport: UpstreamTransport = { kind: "raw" };

/** A session, and the host's certificate that it began with. */
export interface KeptSession {
  readonly session: Buffer;
  readonly certificate: X509Certificate;
}

export interface UpstreamTlsOptions {
  readonly context: CommonTlsContext;
  /** Empty = none is sent. */
  readonly serverName: string;
  /** auto_host_sni: the host's own name where it has one. */
  readonly usesHostName: boolean;
  /** auto_sni_san_validation: the certificate must be for the server name, whatever the name matches say. */
  readonly verifiesServerName: boolean;
  /** Sessions kept for each host; 0 = no resumption. */
  readonly maxSessionsPerHost: number;
  readonly stats: TlsStats;
}

export class UpstreamTls {
  readonly kind = "tls";
  readonly context: CommonTlsContext;
  readonly verifiesServerName: boolean;
  readonly stats: TlsStats;
  readonly #serverName: string;
  readonly #usesHostName: boolean;
  readonly #maxSessionsPerHost: number;
  #sessionsOf: TlsMaterial | undefined = undefined;
  /** By server name within a host; goes with the host. */
  #sessions = new WeakMap<Host, Map<string, KeptSession[]>>();

  constructor(options: UpstreamTlsOptions) {
    this.context = options.context;
    this.verifiesServerName = options.verifiesServerName;
    this.stats = options.stats;
    this.#serverName = options.serverName;
    this.#usesHostName = options.usesHostName;
    this.#maxSessionsPerHost = options.maxSessionsPerHost;
  }

  get keepsSessions(): boolean {
    return this.#maxSessionsPerHost > 0;
  }

  serverNameFor(host: Host): string {
    return this.#usesHostName && host.hostname !== "" ? host.hostname : this.#serverName;
  }

  /**
   * A session to take up again, used once where its ticket is (RFC 8446 §C.4). Sessions of former secrets are
   * forgotten.
   */
  takeSession(material: TlsMaterial, host: Host, serverName: string): KeptSession | undefined {
    this.#forgetFormer(material);
    return this.#sessions.get(host)?.get(serverName)?.pop();
  }

  keepSession(material: TlsMaterial, host: Host, serverName: string, session: KeptSession): void {
    this.#forgetFormer(material);
    // A connection may outlive the secrets that it was made with.
    if (material !== this.#sessionsOf) return;
    let byName = this.#sessions.get(host);
    if (byName === undefined) this.#sessions.set(host, (byName = new Map()));
    let sessions = byName.get(serverName);
    if (sessions === undefined) {
      if (byName.size >= maxServerNames) byName.clear();
      byName.set(serverName, (sessions = []));
    }
    sessions.push(session);
    if (sessions.length > this.#maxSessionsPerHost) sessions.shift();
  }

  #forgetFormer(material: TlsMaterial): void {
    if (this.#sessionsOf === material || material !== this.context.material) return;
    this.#sessionsOf = material;
    this.#sessions = new WeakMap();
  }
}

/** Server names come from requests where auto_sni is on. */
const maxServerNames = 64;
