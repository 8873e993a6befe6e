// What has to happen with the resource owner before a code may be issued, in order: the first need that applies decides
// which page comes next, or which error a `prompt=none` request gets (OpenID Connect Core §3.1.2.6).
import type { Need, OwnerState } from "./owner-state.ts";
import { needAccountChoice } from "./needs/need-account-choice.ts";
import { needAskedConsent } from "./needs/need-asked-consent.ts";
import { needConsentForEachUse } from "./needs/need-consent-for-each-use.ts";
import { needFreshLogin } from "./needs/need-fresh-login.ts";
import { needGrant } from "./needs/need-grant.ts";
import { needRecentLogin } from "./needs/need-recent-login.ts";
import { needSession } from "./needs/need-session.ts";
import { needWantedUser } from "./needs/need-wanted-user.ts";

export type OwnerCheck = (state: OwnerState) => Need | undefined;

export const ownerChecks: readonly OwnerCheck[] = [
  needSession,
  needWantedUser,
  needFreshLogin,
  needRecentLogin,
  needAccountChoice,
  needAskedConsent,
  needConsentForEachUse,
  needGrant,
];

export function firstNeed(state: OwnerState): Need | undefined {
  for (const check of ownerChecks) {
    const need = check(state);
    if (need !== undefined) return need;
  }
  return undefined;
}
