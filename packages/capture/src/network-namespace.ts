// A network namespace that this process holds by a descriptor. It has no name: the kernel drops it, with its links and
// tables, when nobody has it any more, however those who had it ended.
//
// A socket or program belongs to the network that its thread is in when it is made, and stays there.
import { closeSync, openSync } from "node:fs";
import { connect, isIP, type Socket } from "node:net";
import { closeDescriptor, enterNetwork, leaveNetwork } from "./kernel.ts";

const ownNetwork = "/proc/thread-self/ns/net";

export interface ConnectTo {
  readonly host: string;
  readonly port: number;
  readonly allowHalfOpen?: boolean;
}

export class NetworkNamespace implements Disposable {
  readonly #descriptor: number;

  private constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  /** One with nothing in it. @throws where this process may not make one */
  static create(): NetworkNamespace {
    const home = openSync(ownNetwork, "r");
    try {
      if (!leaveNetwork()) throw new Error("this process may not make a network namespace");
      return new NetworkNamespace(openSync(ownNetwork, "r"));
    } finally {
      enterNetwork(home);
      closeSync(home);
    }
  }

  /** Puts this process itself into one with nothing in it. @throws where it may not */
  static leaveCurrent(): void {
    if (!leaveNetwork()) throw new Error("this process may not make a network namespace");
  }

  /** The one that this process is in. */
  static current(): NetworkNamespace {
    return new NetworkNamespace(openSync(ownNetwork, "r"));
  }

  /** Of a path as `path` gives it. */
  static at(path: string): NetworkNamespace {
    return new NetworkNamespace(openSync(path, "r"));
  }

  /** Puts the calling thread into the network of a descriptor, for good. @throws where it may not */
  static stayIn(descriptor: number): void {
    if (!enterNetwork(descriptor)) throw new Error("this process may not enter the network");
  }

  /** For other processes of this user, as long as this one has it. */
  get path(): string {
    return `/proc/${process.pid}/fd/${this.#descriptor}`;
  }

  get descriptor(): number {
    return this.#descriptor;
  }

  /** What the call makes without waiting, sockets, programs and files of /proc/net, is of this network. */
  within<T>(make: () => T): T {
    const home = openSync(ownNetwork, "r");
    try {
      if (!enterNetwork(this.#descriptor)) throw new Error("this process may not enter the network");
      return make();
    } finally {
      enterNetwork(home);
      closeSync(home);
    }
  }

  /** A connection of this network to an address. */
  connect({ host, port, allowHalfOpen = false }: ConnectTo): Socket {
    // Where looking up is no wait, the socket is made at once.
    return this.within(() =>
      connect({
        host: `at ${host}`,
        port,
        allowHalfOpen,
        lookup: (_host, _options, done) => done(null, host, isIP(host)),
        autoSelectFamily: false,
      }),
    );
  }

  [Symbol.dispose](): void {
    closeDescriptor(this.#descriptor);
  }
}
