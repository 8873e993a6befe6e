// Shares of traffic: a fraction is decided by one random number in [0, 1) that the caller draws
// (type.v3.FractionalPercent).
import { type FractionalPercent, FractionalPercent_DenominatorType } from "@tulle/xds/envoy/type/v3/percent_pb";

const denominators: Readonly<Record<number, number>> = {
  [FractionalPercent_DenominatorType.HUNDRED]: 100,
  [FractionalPercent_DenominatorType.TEN_THOUSAND]: 10_000,
  [FractionalPercent_DenominatorType.MILLION]: 1_000_000,
};

/** The share as a number in [0, 1]. */
export function fractionOf(percent: FractionalPercent): number {
  return Math.min(1, percent.numerator / denominatorOf(percent));
}

export function denominatorOf(percent: FractionalPercent | undefined): number {
  return denominators[percent?.denominator ?? FractionalPercent_DenominatorType.HUNDRED] ?? 100;
}
