// Loopback addresses: each instance has a block of 127.0.0.0/8 to itself, so that several run side by side with the
// same ports.
import { createHash } from "node:crypto";
import { createServer, type Server } from "node:net";

/** A block is a /22: the control plane, and two addresses for each of about 500 pods. */
const blockBits = 10;
const blockSize = 1 << blockBits;
/** Those that pods get: the first is the control plane's, the last two are the claim's and nobody's. */
const firstOffset = 2;
const lastOffset = blockSize - 3;
/** 127.16.0.0 to 127.239.255.255: away from 127.0.0.1 and from resolvers that use 127.0.0.53. */
const firstBlock = 16 << (16 - blockBits);
const blockCount = 224 << (16 - blockBits);
/** The port of the block's last address that the instance holds for as long as it lives; nothing is ever sent there. */
const claimPort = 15_999;

/** A block that this process holds; the claim ends with the process, however it ends. */
export interface AddressBlock {
  /** Position among all blocks, to be found again at the next start. */
  readonly index: number;
  readonly controlPlaneAddress: string;
  /** All its addresses, as `127.16.4.0/22`. */
  readonly range: string;
  /** How many addresses can still be given away. */
  readonly free: number;
  /** Addresses in turn, so that one just given back rests as long as possible. @throws when none is left */
  allocate(): string;
  release(address: string): void;
  close(): void;
}

/** Claims a free block: the preferred one, else the one that the folder's name leads to, else those after it. */
export async function claimBlock(folder: string, preferredIndex?: number): Promise<AddressBlock> {
  const start = preferredIndex ?? createHash("sha256").update(folder).digest().readUInt32BE(0) % blockCount;
  for (let step = 0; step < blockCount; step += 1) {
    const index = (start + step) % blockCount;
    const claim = await tryClaim(addressIn(index, blockSize - 2));
    if (claim !== undefined) return new HeldBlock(index, claim);
  }
  throw new Error("every block of loopback addresses is in use");
}

function tryClaim(address: string): Promise<Server | undefined> {
  const { promise, resolve } = Promise.withResolvers<Server | undefined>();
  const server = createServer((socket) => socket.destroy());
  server.once("error", () => resolve(undefined));
  server.listen({ host: address, port: claimPort, exclusive: true }, () => resolve(server.unref()));
  return promise;
}

export function addressIn(blockIndex: number, offset: number): string {
  const number = ((firstBlock + blockIndex) << blockBits) + offset;
  return `127.${(number >>> 16) & 255}.${(number >>> 8) & 255}.${number & 255}`;
}

class HeldBlock implements AddressBlock {
  readonly index: number;
  readonly controlPlaneAddress: string;
  readonly range: string;
  readonly #claim: Server;
  readonly #used = new Set<string>();
  #next = firstOffset;

  constructor(index: number, claim: Server) {
    this.index = index;
    this.#claim = claim;
    this.controlPlaneAddress = addressIn(index, 1);
    this.range = `${addressIn(index, 0)}/${32 - blockBits}`;
  }

  get free(): number {
    return lastOffset - firstOffset + 1 - this.#used.size;
  }

  allocate(): string {
    for (let step = 0; step < blockSize; step += 1) {
      const offset = this.#next;
      this.#next = offset === lastOffset ? firstOffset : offset + 1;
      const address = addressIn(this.index, offset);
      if (this.#used.has(address)) continue;
      this.#used.add(address);
      return address;
    }
    throw new Error(`all ${lastOffset - firstOffset + 1} loopback addresses of this instance are in use`);
  }

  release(address: string): void {
    this.#used.delete(address);
  }

  close(): void {
    this.#claim.close();
  }
}
