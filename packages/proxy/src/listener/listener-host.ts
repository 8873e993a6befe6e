// The sockets of a worker: binds what the runtime's listeners name, hands each accepted connection to the filter chain
// that matches, and drains what leaves the configuration (Envoy: ListenerManager, ConnectionHandler).
import type { DataPath } from "../connection/data-path.ts";
import type { Listener } from "../runtime/proxy-runtime.ts";
import type { InheritedDescriptors } from "./inherited-descriptors.ts";

export interface ListenerHostOptions {
  readonly dataPath: DataPath;
  readonly inheritedDescriptors: InheritedDescriptors;
}

export class ListenerHost {
  readonly #options: ListenerHostOptions;

  constructor(options: ListenerHostOptions) {
    this.#options = options;
  }

  /**
   * Starts the listener, or puts it in place of the one with its name: when the addresses stay, sockets stay too, and
   * open connections keep the filter chain that they began with and are drained when it has changed. Resolves to undefined once it
   * accepts, or to the reason why not (`cannot bind '127.0.0.1:80': Address already in use`), the old one then lives on.
   */
  apply(listener: Listener): Promise<string | undefined> {
    throw new Error(`not built: ${listener.name} ${this.#options.inheritedDescriptors.size}`);
  }

  /** Stops accepting at once; open connections get `Connection: close` and are cut after `drainTimeMs`. */
  remove(_name: string, _drainTimeMs: number): void {}

  /** Addresses that are bound now, by listener name, with the real port where the configuration said 0. */
  boundAddresses(): ReadonlyMap<string, readonly { readonly ip: string; readonly port: number }[]> {
    return new Map();
  }

  /** Answers from now on carry `Connection: close`; resolves when the last connection is gone or `drainTimeMs` is over. */
  drain(_drainTimeMs: number): Promise<void> {
    return Promise.resolve();
  }

  /** Closes sockets and connections at once. */
  stop(): Promise<void> {
    return Promise.resolve();
  }

  get activeConnections(): number {
    return 0;
  }
}
