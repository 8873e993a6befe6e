// Of several control planes that serve one mesh, one does what must be done once: it moves the authority from phase to
// phase, takes the steps of roll-outs, and writes what others read.
export interface Leadership {
  readonly isLeader: boolean;
  /** For people: who leads now, as far as is known. */
  readonly leader: string | undefined;
  /** Calls back when this one begins to lead, or ends. Returns how to end that. */
  follow(listener: () => void): () => void;
}
