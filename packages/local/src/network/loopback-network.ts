// Loopback mode: pods are programs of the machine's own network, each at loopback addresses of its own.
import path from "node:path";
import type { PodPlan } from "../pod/pod-plan.ts";
import { hostAddress, nodeName } from "../pod/node.ts";
import type { AddressBlock } from "./address-block.ts";
import { connectHere, machineHere, type MeshNetwork, type PodAddresses, type PodNetwork } from "./pod-network.ts";

export class LoopbackNetwork implements MeshNetwork {
  readonly controlPlaneAddress: string;
  readonly controlPlaneArguments: readonly string[] = [];
  readonly sharedRange: string;
  readonly machine = machineHere;
  readonly #block: AddressBlock;

  constructor(block: AddressBlock) {
    this.#block = block;
    this.controlPlaneAddress = block.controlPlaneAddress;
    this.sharedRange = block.range;
  }

  room(plan: Pick<PodPlan, "injection">): number {
    return Math.floor(this.#block.free / addressesOf(plan));
  }

  newPod(_name: string, plan: Pick<PodPlan, "injection">): PodNetwork {
    const pod = this.#block.allocate();
    const addresses = { pod, app: addressesOf(plan) === 2 ? this.#block.allocate() : pod };
    return loopbackPod(addresses, () => {
      for (const address of new Set([addresses.pod, addresses.app])) this.#block.release(address);
    });
  }

  close(): void {
    this.#block.close();
  }
}

export function loopbackPod(addresses: PodAddresses, close: () => void = () => undefined): PodNetwork {
  return {
    addresses,
    ips: [addresses.pod],
    node: { name: nodeName, address: hostAddress },
    interceptionMode: "NONE",
    proxyAt: addresses.pod,
    appAt: addresses.app,
    listenAt: addresses.app,
    connect: connectHere,
    ways: undefined,
    proxyFolder: (podFolder) => podFolder,
    tokenFile: (podFolder) => path.join(podFolder, "token"),
    enter: ({ env }) => ({ enter: [], env }),
    close,
  };
}

/** The pod's and, past a sidecar, the app's. */
function addressesOf({ injection }: Pick<PodPlan, "injection">): 1 | 2 {
  return injection === "sidecar" ? 2 : 1;
}
