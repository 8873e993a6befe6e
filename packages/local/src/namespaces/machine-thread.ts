// The thread that is in the machine's network while the supervisor is in one of its own (machine-network.ts): it makes
// sockets and asks the kernel, and does nothing else. The supervisor waits for each answer.
import { type MessagePort, workerData } from "node:worker_threads";
import { isDeliveredHere, NetworkNamespace, openSocket } from "@tulle/capture";
import { reachableAddresses } from "@tulle/listening";
import { holderText, isKeptByClosedConnections } from "../network/port-holder.ts";
import { hasWayByIpv6 } from "./way-by-ipv6.ts";

export interface ThreadSettings {
  readonly port: MessagePort;
  /** 0 until there is an answer. */
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
  readonly name: keyof MachineAnswers;
  readonly args: readonly never[];
}

const { port, turn, network } = workerData as ThreadSettings;

function answered(): void {
  Atomics.store(turn, 0, 1);
  Atomics.notify(turn, 0);
}

port.on("message", ({ name, args }: Question) => {
  try {
    port.postMessage({ answer: (answers[name] as (...given: readonly never[]) => unknown)(...args) });
  } catch (error) {
    port.postMessage({ error: String(error) });
  }
  answered();
});
if (network !== undefined) NetworkNamespace.stayIn(network);
answered();
