// The thread that is in the machine's network while the supervisor is in one of its own (machine-network.ts): it makes
// sockets and asks the kernel, and does nothing else. The supervisor waits for each answer.
import { type MessagePort, workerData } from "node:worker_threads";
import { isDeliveredHere, NetworkNamespace, openSocket } from "@tulle/capture";
import { reachableAddresses } from "@tulle/listening";
import { holderText, isKeptByClosedConnections } from "../network/port-holder.ts";
import { hasWayByIpv6 } from "./way-by-ipv6.ts";

export interface ThreadSettings {
  readonly port: MessagePort;
  /** 1 once it is there, and one more with each answer. */
  readonly turn: Int32Array;
  /** Descriptor of the network that it goes to; without it, it stays where it was made. */
  readonly network: number | undefined;
}

const answers = {
  openSocket,
  isDeliveredHere,
  hasWayByIpv6,
  holderText,
  isKeptByClosedConnections,
  reachableAddresses,
};

export type MachineAnswers = typeof answers;

interface Question {
  readonly number: number;
  readonly name: keyof MachineAnswers;
  readonly args: readonly never[];
}

/** One of the two is there. */
export interface MachineAnswer<Value> {
  /** Of the question. */
  readonly number: number;
  readonly answer?: Value;
  readonly error?: string;
}

const { port, turn, network } = workerData as ThreadSettings;

function answered(): void {
  Atomics.add(turn, 0, 1);
  Atomics.notify(turn, 0);
}

port.on("message", ({ number, name, args }: Question) => {
  try {
    port.postMessage({ number, answer: (answers[name] as (...given: readonly never[]) => unknown)(...args) });
  } catch (error) {
    port.postMessage({ number, error: String(error) });
  }
  answered();
});
if (network !== undefined) NetworkNamespace.stayIn(network);
answered();
