// The machine's network, for a supervisor that lives in a network of its own: a thread of this process stays there (or
// goes there), and makes sockets, which are of the network that their maker is in, whoever uses them. So it takes no
// right to go back.
import { isIPv6, Socket, type SocketConstructorOpts } from "node:net";
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from "node:worker_threads";
import type { ConnectTo, NetworkNamespace, SocketKind } from "@tulle/capture";
import type { Address, Machine } from "../network/pod-network.ts";
import type { MachineAnswer, MachineAnswers, ThreadSettings } from "./machine-thread.ts";

/** It answers within a hundredth of a millisecond; whoever waits so long waits for nothing. */
const patienceMs = 30_000;

export class MachineNetwork implements Machine, Disposable {
  readonly #thread: Worker;
  readonly #port: MessagePort;
  readonly #turn: Int32Array;
  /** Of the question asked last. */
  #number = 0;

  /** Of the network that this process is in now, or of another one that it may enter. */
  constructor(network?: NetworkNamespace) {
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    this.#turn = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const settings: ThreadSettings = { port: port2, turn: this.#turn, network: network?.descriptor };
    this.#thread = new Worker(new URL("./machine-thread.ts", import.meta.url), {
      workerData: settings,
      transferList: [port2],
    });
    this.#thread.unref();
    this.#wait(1, "begin");
  }

  openSocket = (kind: SocketKind): number => {
    const descriptor = this.#ask("openSocket", kind);
    if (descriptor === undefined) throw new Error("the machine gives no socket");
    return descriptor;
  };

  connect = ({ host, port, allowHalfOpen = false }: ConnectTo): Socket => {
    const fd = this.openSocket(isIPv6(host) ? "tcp6" : "tcp4");
    const options: SocketConstructorOpts & { readonly manualStart: true } = {
      fd,
      allowHalfOpen,
      readable: true,
      writable: true,
      manualStart: true,
    };
    return new Socket(options).connect({ host, port });
  };

  holderText = (address: string, port: number): string => this.#ask("holderText", address, port);

  isKeptByClosedConnections = (address: string, port: number): boolean =>
    this.#ask("isKeptByClosedConnections", address, port);

  isDeliveredHere(ip: string): boolean | undefined {
    return this.#ask("isDeliveredHere", ip);
  }

  /** As @tulle/listening has it. */
  reachableAddresses(listening: Address): readonly string[] {
    return this.#ask("reachableAddresses", listening);
  }

  hasWayByIpv6(): boolean {
    return this.#ask("hasWayByIpv6");
  }

  #ask<Name extends keyof MachineAnswers>(
    name: Name,
    ...args: Parameters<MachineAnswers[Name]>
  ): ReturnType<MachineAnswers[Name]> {
    this.#number += 1;
    const number = this.#number;
    this.#port.postMessage({ number, name, args });
    this.#wait(number + 1, name);
    // Before it lies what came too late for an earlier question.
    for (let message = this.#nextMessage<Name>(); ; message = this.#nextMessage()) {
      if (message.number !== number) continue;
      if (message.error !== undefined) throw new Error(message.error);
      return message.answer!;
    }
  }

  #nextMessage<Name extends keyof MachineAnswers>(): MachineAnswer<ReturnType<MachineAnswers[Name]>> {
    return receiveMessageOnPort(this.#port)!.message as MachineAnswer<ReturnType<MachineAnswers[Name]>>;
  }

  /** Until the thread has come so far; `what` is for people. */
  #wait(turn: number, what: string): void {
    for (;;) {
      const seen = Atomics.load(this.#turn, 0);
      if (seen >= turn) return;
      if (Atomics.wait(this.#turn, 0, seen, patienceMs) === "timed-out")
        throw new Error(`the thread in the machine's network does not answer (${what})`);
    }
  }

  [Symbol.dispose](): void {
    this.#port.close();
    void this.#thread.terminate();
  }
}
