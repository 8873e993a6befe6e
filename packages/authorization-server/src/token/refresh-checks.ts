// Every check of a refresh token, in order, inside the transaction that rotates it.
import type { Check } from "../protocol/checks.ts";
import type { GrantContext, RefreshDraft } from "./draft.ts";
import { requireGrantedResource } from "./grant-resource.ts";
import { refuseRevokedAuthorization } from "./refresh-checks/refuse-revoked-authorization.ts";
import { requireFreshRefreshToken } from "./refresh-checks/require-fresh-refresh-token.ts";
import { requireGrantedScope } from "./refresh-checks/require-granted-scope.ts";
import { requireKnownRefreshToken } from "./refresh-checks/require-known-refresh-token.ts";
import { requireLiveGrant } from "./refresh-checks/require-live-grant.ts";
import { requireLiveSession } from "./refresh-checks/require-live-session.ts";
import { requireRefreshTokenOfClient } from "./refresh-checks/require-refresh-token-of-client.ts";
import { requireRefreshToken } from "./refresh-checks/require-refresh-token.ts";
import { rotateOrRepeat } from "./refresh-checks/rotate-or-repeat.ts";

export const refreshChecks: ReadonlyArray<Check<RefreshDraft, GrantContext>> = [
  requireRefreshToken,
  requireKnownRefreshToken,
  requireRefreshTokenOfClient,
  refuseRevokedAuthorization,
  requireFreshRefreshToken,
  requireLiveGrant,
  requireLiveSession,
  requireGrantedScope,
  requireGrantedResource,
  rotateOrRepeat,
];
