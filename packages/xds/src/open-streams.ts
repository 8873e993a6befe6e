// The streams that stand at a server, and whether one more may: by their number over all, of one connection, and by who
// admits.
import type { AdsAddress, Refusal, StreamOpening } from "./ads-server-api.ts";

/** Streams of one TCP connection, which is one client's: it needs two or three. One more gets RESOURCE_EXHAUSTED. */
export const maxStreamsPerConnection = 100;

export interface OpenStreamsOptions {
  readonly address: AdsAddress;
  readonly limits: { readonly maxStreams: number };
  readonly admission?: (opening: StreamOpening) => Refusal | undefined;
}

type Opening = Pick<StreamOpening, "peer" | "peerIdentity">;

export class OpenStreams<Call> {
  readonly #options: OpenStreamsOptions;
  readonly #calls = new Set<Call>();
  readonly #byPeer = new Tally();
  /** By namespace and service account of the certificate. */
  readonly #byOwner = new Tally();

  constructor(options: OpenStreamsOptions) {
    this.#options = options;
  }

  get calls(): Iterable<Call> {
    return this.#calls;
  }

  /** Why one more may not stand; undefined when it may. */
  refusal(opening: Opening): Refusal | undefined {
    const { address, admission, limits } = this.#options;
    if (this.#calls.size >= limits.maxStreams) return exhausted(`more than ${limits.maxStreams} streams`);
    // Connections of a Unix socket have one name; who may open those is bounded by its mode.
    const ofPeer = "path" in address ? 0 : this.#byPeer.count(opening.peer);
    if (ofPeer >= maxStreamsPerConnection) {
      return exhausted(`more than ${maxStreamsPerConnection} streams of one connection`);
    }
    const owner = ownerOf(opening);
    return admission?.({ ...opening, openStreams: owner === undefined ? ofPeer : this.#byOwner.count(owner) });
  }

  /** What is returned forgets it; true the first time. */
  add(call: Call, opening: Opening): () => boolean {
    const owner = ownerOf(opening);
    this.#calls.add(call);
    this.#byPeer.add(opening.peer);
    if (owner !== undefined) this.#byOwner.add(owner);
    return () => {
      if (!this.#calls.delete(call)) return false;
      this.#byPeer.remove(opening.peer);
      if (owner !== undefined) this.#byOwner.remove(owner);
      return true;
    };
  }
}

function exhausted(details: string): Refusal {
  return { status: "RESOURCE_EXHAUSTED", details };
}

function ownerOf({ peerIdentity }: Opening): string | undefined {
  return peerIdentity && `${peerIdentity.namespace}/${peerIdentity.serviceAccount}`;
}

/** How many there are of each name; what there is none of is forgotten. */
class Tally {
  readonly #counts = new Map<string, number>();

  count(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  add(name: string): void {
    this.#counts.set(name, this.count(name) + 1);
  }

  remove(name: string): void {
    const left = this.count(name) - 1;
    if (left > 0) this.#counts.set(name, left);
    else this.#counts.delete(name);
  }
}
