// Answers the kubelet at the paths of probes: the application is asked for it.
import { askProbe, type ProbeAnswer, type ProbedAddress } from "./application-probe.ts";
import type { ApplicationProbes } from "./read-probes.ts";

export class ProbeDesk {
  readonly #probes: ApplicationProbes;
  readonly #at: ProbedAddress;
  /**
   * Anybody who reaches the pod may ask, as often as he likes: a question that is under way is everybody's, so that the
   * application is asked by one at a time and the kubelet is never turned away.
   */
  readonly #asking = new Map<string, Promise<ProbeAnswer>>();

  constructor(probes: ApplicationProbes, at: ProbedAddress) {
    this.#probes = probes;
    this.#at = at;
  }

  /** Undefined for a path that is no probe of this pod. */
  ask(path: string): Promise<ProbeAnswer> | undefined {
    const probe = this.#probes.get(path);
    if (probe === undefined) return undefined;
    const asking = this.#asking.get(path);
    if (asking !== undefined) return asking;
    const answer = askProbe(probe, this.#at).finally(() => this.#asking.delete(path));
    this.#asking.set(path, answer);
    return answer;
  }
}
