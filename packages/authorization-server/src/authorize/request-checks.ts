// Every check of an authorization request whose client and redirect URI are known, in order. A refusal here goes to the
// client at once, or with `errors-after-sign-in` once the owner has signed in (RFC 9700 §4.11).
import type { Check } from "../protocol/checks.ts";
import type { ServerContext } from "../server-context.ts";
import { dropUselessOfflineAccess } from "./checks/drop-useless-offline-access.ts";
import { refuseRequestObjects } from "./checks/refuse-request-objects.ts";
import { requireAllowedResource } from "./checks/require-allowed-resource.ts";
import { requireAllowedScope } from "./checks/require-allowed-scope.ts";
import { requireCodeGrant } from "./checks/require-code-grant.ts";
import { requireCodeResponseType } from "./checks/require-code-response-type.ts";
import { requireKnownPrompt } from "./checks/require-known-prompt.ts";
import { requireKnownHint } from "./checks/require-known-hint.ts";
import { requirePossibleClaims } from "./checks/require-possible-claims.ts";
import { requirePkce } from "./checks/require-pkce.ts";
import { requireKnownResponseMode } from "./checks/require-known-response-mode.ts";
import { requireReadableParameters } from "./checks/require-readable-parameters.ts";
import { requireResponseType } from "./checks/require-response-type.ts";
import { requireS256 } from "./checks/require-s256.ts";
import { requireShortValues } from "./checks/require-short-values.ts";
import { requireSingleParameters } from "./checks/require-single-parameters.ts";
import { requireWholeMaxAge } from "./checks/require-whole-max-age.ts";
import type { AuthorizeDraft } from "./draft.ts";

export const requestChecks: ReadonlyArray<Check<AuthorizeDraft, ServerContext>> = [
  requireKnownPrompt,
  requireSingleParameters,
  requireReadableParameters,
  requireShortValues,
  refuseRequestObjects,
  requireResponseType,
  requireCodeResponseType,
  requireKnownResponseMode,
  requireCodeGrant,
  requireWholeMaxAge,
  requirePkce,
  requireS256,
  requireAllowedScope,
  dropUselessOfflineAccess,
  requireAllowedResource,
  requireKnownHint,
  requirePossibleClaims,
];
