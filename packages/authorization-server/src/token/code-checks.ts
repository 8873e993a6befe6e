// Every check of an authorization code, in order, inside the transaction that redeems it.
import type { Check } from "../protocol/checks.ts";
import { refuseReplayedCode } from "./code-checks/refuse-replayed-code.ts";
import { refuseRevokedCode } from "./code-checks/refuse-revoked-code.ts";
import { refuseVerifierWithoutChallenge } from "./code-checks/refuse-verifier-without-challenge.ts";
import { requireCodeOfClient } from "./code-checks/require-code-of-client.ts";
import { requireCode } from "./code-checks/require-code.ts";
import { requireFirstRedemption } from "./code-checks/require-first-redemption.ts";
import { requireFreshCode } from "./code-checks/require-fresh-code.ts";
import { requireKnownCode } from "./code-checks/require-known-code.ts";
import { requireSameRedirectUri } from "./code-checks/require-same-redirect-uri.ts";
import { requireVerifier } from "./code-checks/require-verifier.ts";
import type { CodeDraft, GrantContext } from "./draft.ts";
import { requireGrantedResource } from "./grant-resource.ts";

export const codeChecks: ReadonlyArray<Check<CodeDraft, GrantContext>> = [
  requireCode,
  requireKnownCode,
  requireCodeOfClient,
  refuseReplayedCode,
  refuseRevokedCode,
  requireFreshCode,
  requireSameRedirectUri,
  requireVerifier,
  refuseVerifierWithoutChallenge,
  requireGrantedResource,
  requireFirstRedemption,
];
