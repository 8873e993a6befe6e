// The sockets of a worker: binds what the runtime's listeners name, hands each accepted connection to the filter chain
// that matches, and drains what leaves the configuration (Envoy: ListenerManager, ConnectionHandler).
import net, { isIPv6 } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { makeTransparent } from "@tulle/capture";
import {
  acceptBacklog,
  descriptorLimit,
  descriptorOf,
  DescriptorReserve,
  type InheritedDescriptors,
} from "@tulle/listening";
import { Trouble } from "@tulle/telemetry";
import type { DataPath } from "../worker/data-path.ts";
import { ipPortText } from "../http/ip-port-text.ts";
import { sameAddress, sameAddresses } from "../runtime/same-addresses.ts";
import type { ListenAddress, Listener } from "./listener.ts";
import { ActiveListener } from "./active-listener.ts";
import { ListenerAddresses } from "./listener-addresses.ts";
import { reaches } from "./reaches.ts";
import { OwnUserGate } from "../own-user/own-user-gate.ts";

export interface ListenerHostOptions {
  readonly dataPath: DataPath;
  readonly inheritedDescriptors: InheritedDescriptors;
  /** Ports that only programs of this process's own user may connect to. */
  readonly ownUserPorts?: ReadonlySet<number>;
  /** How long connections of a filter chain that is no longer configured go on (Envoy: --drain-time-s, 600 s). */
  readonly drainTimeMs?: number;
}

/** How long a process that is to end goes on. */
export interface DrainTimes {
  /** New connections are taken at least for that long. */
  readonly leastMs: number;
  /** What has not ended by then is cut. */
  readonly mostMs: number;
}

interface Bound {
  readonly server: net.Server;
  readonly configured: ListenAddress;
  /** False for an inherited descriptor: closing it here leaves the parent's open. */
  readonly own: boolean;
}

interface Entry {
  readonly active: ActiveListener;
  readonly bound: readonly Bound[];
}

const defaultDrainTimeMs = 600_000;

export class ListenerHost {
  readonly #dataPath: DataPath;
  readonly #descriptors: InheritedDescriptors;
  readonly #drainTimeMs: number;
  readonly #ownUserPorts: ReadonlySet<number>;
  readonly #ownUserGate: OwnUserGate;
  readonly #entries = new Map<string, Entry>();
  /** Of all entries; undefined since one has changed. */
  #byAddress: ListenerAddresses<ActiveListener> | undefined = undefined;
  /** Such as no descriptor being left, which every connection would tell anew. */
  readonly #acceptTrouble: Trouble;
  readonly #descriptorReserve: DescriptorReserve;
  /** Removed listeners whose connections have not ended yet. */
  readonly #leaving = new Set<ActiveListener>();
  /**
   * What was asked for last, by name; a listener that is removed, or a host that stops, while sockets are bound lets go
   * of them.
   */
  readonly #wanted = new Map<string, Listener>();
  #lastApplied: Promise<unknown> = Promise.resolve();

  constructor(options: ListenerHostOptions) {
    this.#dataPath = options.dataPath;
    this.#acceptTrouble = new Trouble(options.dataPath.connectionLog);
    this.#descriptorReserve = new DescriptorReserve(options.dataPath.connectionLog, descriptorLimit());
    this.#descriptors = options.inheritedDescriptors;
    this.#ownUserPorts = options.ownUserPorts ?? new Set();
    this.#ownUserGate = new OwnUserGate(options.dataPath.connectionLog);
    this.#drainTimeMs = options.drainTimeMs ?? defaultDrainTimeMs;
  }

  /**
   * Starts the listener, or puts it in place of the one with its name: when the addresses stay, sockets stay too, and
   * open connections keep the filter chain that they began with and are drained when it has changed. Resolves to
   * undefined once it accepts, or to the reason why not (`cannot bind '127.0.0.1:80': Address already in use`), the old
   * one then lives on.
   */
  apply(listener: Listener): Promise<string | undefined> {
    this.#wanted.set(listener.name, listener);
    const applied = this.#lastApplied.then(() => this.#apply(listener));
    this.#lastApplied = applied.catch(() => undefined);
    return applied;
  }

  async #apply(listener: Listener): Promise<string | undefined> {
    const present = this.#entries.get(listener.name);
    if (present === undefined) return this.#start(listener);
    if (sameAddresses(present.active.listener, listener)) {
      present.active.replace(listener, this.#drainTimeMs);
      return undefined;
    }
    return this.#move(present, listener);
  }

  async #start(listener: Listener): Promise<string | undefined> {
    const active = new ActiveListener(listener, this.#dataPath, (ip, port) => this.#addresses().find(ip, port));
    const addresses = listener.bindToPort ? listener.addresses : [];
    const bound = await this.#bindAll(addresses, active);
    if (typeof bound === "string") return bound;
    if (!this.#wanted.has(listener.name)) return letGo(bound);
    this.#setEntry(listener.name, { active, bound });
    this.#dataPath.connectionLog.info("listening", { listener: listener.name, addresses: addressesText(listener) });
    return undefined;
  }

  // Addresses that stay keep their sockets; new ones are bound first, so that a failure changes nothing.
  async #move(present: Entry, listener: Listener): Promise<string | undefined> {
    const addresses = listener.bindToPort ? listener.addresses : [];
    const staying = present.bound.filter(({ configured }) =>
      addresses.some((address) => sameAddress(address, configured)),
    );
    const added = addresses.filter((address) => !staying.some(({ configured }) => sameAddress(address, configured)));
    const bound = await this.#bindAll(added, present.active);
    if (typeof bound === "string") return bound;
    if (!this.#wanted.has(listener.name)) return letGo(bound);
    for (const leaving of present.bound) if (!staying.includes(leaving)) leaving.server.close();
    present.active.replace(listener, this.#drainTimeMs);
    this.#setEntry(listener.name, { active: present.active, bound: [...staying, ...bound] });
    return undefined;
  }

  #setEntry(name: string, entry: Entry): void {
    this.#entries.set(name, entry);
    this.#byAddress = undefined;
  }

  #addresses(): ListenerAddresses<ActiveListener> {
    if (this.#byAddress !== undefined) return this.#byAddress;
    const addresses = new ListenerAddresses<ActiveListener>();
    for (const { active, bound } of this.#entries.values()) {
      const own = active.listener.bindToPort ? bound.map(boundAddress) : active.listener.addresses;
      for (const address of own) addresses.add(address, active);
    }
    return (this.#byAddress = addresses);
  }

  async #bindAll(addresses: readonly ListenAddress[], active: ActiveListener): Promise<Bound[] | string> {
    const bound: Bound[] = [];
    for (const address of addresses) {
      const fault = await this.#bindOne(address, active, bound);
      if (fault === undefined) continue;
      for (const { server } of bound) server.close();
      return fault;
    }
    return bound;
  }

  /**
   * The address itself, and the sockets that the parent has bound for its port: what is published is reached by both.
   * Adds to `bound`.
   */
  async #bindOne(address: ListenAddress, active: ActiveListener, bound: Bound[]): Promise<string | undefined> {
    const inherited: Bound[] = [];
    for (const descriptor of this.#descriptors.get(address.port) ?? []) {
      const result = await this.#bind(address, descriptor, active);
      if (result instanceof Error) return bindFault(address, result);
      inherited.push(result);
    }
    const own = await this.#bind(address, undefined, active);
    if (!(own instanceof Error)) bound.push(own);
    bound.push(...inherited);
    if (!(own instanceof Error)) return undefined;
    if (inherited.length === 0) return bindFault(address, own);
    // An inherited socket may have that very address, and connections to it then.
    if (own.code === "EADDRINUSE" && inherited.some((each) => overlaps(boundAddress(each), address))) return undefined;
    // A port below 1024, or one that another user has taken: what is published goes on without it.
    const reason = bindFault(address, own);
    this.#dataPath.connectionLog.warning("only inherited sockets accept", { listener: active.listener.name, reason });
    return undefined;
  }

  #bind(
    address: ListenAddress,
    fd: number | undefined,
    active: ActiveListener,
  ): Promise<Bound | NodeJS.ErrnoException> {
    const server = net.createServer(
      {
        allowHalfOpen: true,
        noDelay: true,
        pauseOnConnect: true,
        highWaterMark: active.listener.perConnectionBufferLimitBytes,
      },
      (socket) => this.#accept(socket, active),
    );
    return new Promise((resolve) => {
      server.once("error", resolve);
      server.once("listening", () => {
        if (address.isTransparent === true && !makeTransparent(descriptorOf(server), isIPv6(address.ip))) {
          server.close();
          resolve(new Error("a transparent socket takes CAP_NET_ADMIN"));
          return;
        }
        server.on("error", (error) => this.#acceptTrouble.begin("accept failed", { reason: error.message }));
        resolve({ server, configured: address, own: fd === undefined });
      });
      if (fd === undefined) server.listen({ ...listenOptions(address), backlog: acceptBacklog });
      else server.listen({ fd });
    });
  }

  #accept(socket: net.Socket, active: ActiveListener): void {
    const { overload, random } = this.#dataPath;
    const { stats } = active.listener;
    this.#acceptTrouble.end("connections are accepted again");
    if (this.#isForOwnUser(socket.localPort) && !this.#ownUserGate.admits(socket, active.listener.name)) return;
    if (this.activeConnections >= overload.maxConnections) {
      stats.globalOverflow.increment();
      socket.destroy();
    } else if (
      overload.refusesConnection(random) ||
      this.#descriptorReserve.refuses(descriptorOf(socket), this.#dataPath.turn.nowMs)
    ) {
      stats.overloadRejected.increment();
      socket.destroy();
    } else {
      active.accept(socket);
    }
  }

  /** A socket that does not tell its port is for nobody else either. */
  #isForOwnUser(port: number | undefined): boolean {
    return this.#ownUserPorts.size > 0 && (port === undefined || this.#ownUserPorts.has(port));
  }

  /** Stops accepting at once; open connections get `Connection: close` and are cut after `drainTimeMs`. */
  remove(name: string, drainTimeMs: number): void {
    this.#wanted.delete(name);
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    this.#entries.delete(name);
    this.#byAddress = undefined;
    for (const { server } of entry.bound) server.close();
    this.#leaving.add(entry.active);
    void entry.active.drain(drainTimeMs).then(() => this.#leaving.delete(entry.active));
  }

  /** Whether a connection to that address would come to one of these sockets. */
  isListeningAt(ip: string, port: number): boolean {
    for (const { bound } of this.#entries.values()) {
      if (bound.some((each) => reaches(ip, port, boundAddress(each)))) return true;
    }
    return false;
  }

  /** Addresses that are bound now, by listener name, with the real port where the configuration said 0. */
  boundAddresses(): ReadonlyMap<string, readonly ListenAddress[]> {
    const bound = [...this.#entries].filter(([, entry]) => entry.bound.length > 0);
    return new Map(bound.map(([name, entry]) => [name, entry.bound.map(boundAddress)]));
  }

  /**
   * Answers from now on carry `Connection: close`, while new connections are still taken (Envoy: drain of a process);
   * after `leastMs` those of inherited sockets wait for whoever else has them, or comes next. Resolves when no
   * connection is left, not before `leastMs`, or after `mostMs`, when those that are left are cut.
   */
  async drain({ leastMs, mostMs }: DrainTimes): Promise<void> {
    for (const { active } of this.#entries.values()) active.beginDrain();
    if (leastMs > 0) await sleep(leastMs);
    for (const { bound } of this.#entries.values()) for (const { own, server } of bound) if (!own) server.close();
    const all = [...this.#entries.values()].map(({ active }) => active.drain(Math.max(mostMs - leastMs, 0)));
    await Promise.all(all);
  }

  /** Closes sockets and connections at once. */
  async stop(): Promise<void> {
    const closing: Promise<void>[] = [];
    for (const { active, bound } of this.#entries.values()) {
      for (const { server } of bound) closing.push(new Promise((resolve) => server.close(() => resolve())));
      active.destroyConnections();
    }
    for (const active of this.#leaving) active.destroyConnections();
    this.#entries.clear();
    this.#byAddress = undefined;
    this.#wanted.clear();
    await Promise.all(closing);
  }

  get activeConnections(): number {
    let count = 0;
    for (const { active } of this.#entries.values()) count += active.connectionCount;
    for (const active of this.#leaving) count += active.connectionCount;
    return count;
  }
}

function boundAddress({ server, configured }: Bound): ListenAddress {
  const actual = server.address();
  if (typeof actual !== "object" || actual === null) return configured;
  return { ...configured, ip: actual.address, port: actual.port };
}

function letGo(bound: readonly Bound[]): string {
  for (const { server } of bound) server.close();
  return "the listener was removed while its addresses were being bound";
}

/** What Node is asked for; `::` alone is IPv6 alone, as in Envoy. */
export function listenOptions({ ip, port, takesIpv4 = false }: ListenAddress): net.ListenOptions {
  return { host: ip, port, exclusive: true, ipv6Only: isIPv6(ip) && !takesIpv4 };
}

function addressesText(listener: Listener): string {
  return listener.addresses.map(({ ip, port }) => ipPortText(ip, port)).join(" ");
}

function bindFault({ ip, port }: ListenAddress, error: NodeJS.ErrnoException): string {
  return `cannot bind '${ipPortText(ip, port)}': ${bindErrorText(error)}`;
}

/** Whether two sockets cannot both listen at these addresses. */
function overlaps(a: ListenAddress, b: ListenAddress): boolean {
  return a.port === b.port && (a.ip === b.ip || isAny(a.ip) || isAny(b.ip));
}

function isAny(ip: string): boolean {
  return ip === "0.0.0.0" || ip === "::";
}

const bindErrorTexts: Readonly<Record<string, string>> = {
  EADDRINUSE: "Address already in use",
  EADDRNOTAVAIL: "Cannot assign requested address",
  EACCES: "Permission denied",
  EINVAL: "Invalid argument",
};

function bindErrorText(error: NodeJS.ErrnoException): string {
  return bindErrorTexts[error.code ?? ""] ?? error.message;
}
