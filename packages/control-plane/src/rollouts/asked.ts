// A person's word to a roll-out.

export interface Asked {
  /** Who asks, in words. */
  readonly by: string;
  /** Of `promote`: past all steps. */
  readonly isFull?: boolean;
}

/** Why a person's word is not followed. */
export class RolloutRefused extends Error {
  override readonly name = "RolloutRefused";
}
