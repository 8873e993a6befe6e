// The grants of the token endpoint: each is a function from a recognized client's request to what it gets, inside one
// transaction. To add one, write it and add its row.
import { firstRefusal } from "../protocol/checks.ts";
import type { Parameters } from "../protocol/parameters.ts";
import type { Refusal } from "../protocol/refusal.ts";
import { audienceFor } from "../protocol/resources.ts";
import type { Authorization } from "../store/authorizations.ts";
import { extendAuthorization, revokeAuthorization } from "../store/authorizations.ts";
import type { Client, GrantType } from "../store/clients.ts";
import type { Transaction } from "../store/database.ts";
import { issueRefreshToken } from "../store/refresh-tokens.ts";
import type { UserClaims } from "../store/users.ts";
import { findUser } from "../store/users.ts";
import { prepareAccessToken } from "./access-token.ts";
import { clientCredentialsChecks } from "./client-credentials-checks.ts";
import { codeChecks } from "./code-checks.ts";
import type { ClientCredentialsDraft, CodeDraft, GrantContext, GrantDraft, RefreshDraft } from "./draft.ts";
import { authorizedResources } from "./grant-resource.ts";
import { refreshChecks } from "./refresh-checks.ts";
import type { TokenSuccess } from "./token-answer.ts";
import { identityClaims, ownClaims, standardScopes } from "./user-claims.ts";

export type GrantResult = { readonly success: TokenSuccess } | { readonly refusal: Refusal };

type Grant = (context: GrantContext, client: Client, parameters: Parameters) => Promise<GrantResult>;

export const grants: Readonly<Record<GrantType, Grant>> = {
  authorization_code: redeemCode,
  refresh_token: refresh,
  client_credentials: actForItself,
};

/** RFC 6749 §4.1.3. A replay is refused and revokes; both are committed. */
async function redeemCode(context: GrantContext, client: Client, parameters: Parameters): Promise<GrantResult> {
  const { server, transaction } = context;
  const draft: CodeDraft = { parameters, client, authorization: undefined, resources: [], replayed: false };
  const refusal = await firstRefusal(codeChecks, draft, context);
  if (refusal !== undefined) {
    if (draft.replayed) {
      server.metrics.codeReplays.increment();
      await revokeAuthorization(transaction, draft.authorization!.id, "code replay");
    }
    return { refusal };
  }
  const authorization = draft.authorization!;
  const { scope } = authorization;
  const about = await aboutUser(transaction, client, authorization, scope);
  const accessToken = await prepareAccessToken(server, transaction, {
    client,
    subject: authorization.userId,
    scope,
    audience: audienceOf(context, draft, scope),
    authorizationId: authorization.id,
    authenticatedAtMs: authorization.authenticatedAtMs,
    userClaims: about.inAccessToken,
  });
  const offline = scope.includes("offline_access");
  const { refreshTokenMs } = server.config.lifetimes;
  const refreshToken = offline ? await issueRefreshToken(transaction, authorization.id, refreshTokenMs) : undefined;
  if (offline) await keepAuthorization(context, authorization.id);
  const success: TokenSuccess = {
    accessToken,
    refreshToken,
    scope,
    idToken: scope.includes("openid") ? { client, authorization, userClaims: about.inIdToken } : undefined,
    nowMs: transaction.nowMs,
  };
  return { success };
}

function audienceOf({ server }: GrantContext, draft: GrantDraft, scope: readonly string[]): readonly string[] {
  return audienceFor({
    asked: draft.resources,
    authorized: authorizedResources(draft, server.config),
    scope,
    clientAudiences: draft.client.audiences,
    config: server.config,
  });
}

/** What the tokens tell of their user; read only where a scope or the client's registration asks for it. */
async function aboutUser(
  transaction: Transaction,
  client: Client,
  { userId, idTokenClaims }: Authorization,
  scope: readonly string[],
): Promise<{ readonly inAccessToken: UserClaims; readonly inIdToken: UserClaims }> {
  const wanted =
    client.claimsInIdToken || idTokenClaims.length > 0 || scope.some((token) => !standardScopes.includes(token));
  const user = wanted ? await findUser(transaction, userId) : undefined;
  if (user === undefined) return { inAccessToken: {}, inIdToken: {} };
  // The parameter `claims` says where a claim is told, never that it may be: that is what the owner has allowed by
  // scope.
  const told = Object.entries(identityClaims(user, scope));
  const inIdToken = told.filter(([name]) => client.claimsInIdToken || idTokenClaims.includes(name));
  return { inAccessToken: ownClaims(user, scope), inIdToken: Object.fromEntries(inIdToken) };
}

async function keepAuthorization({ server, transaction }: GrantContext, id: string): Promise<void> {
  const { refreshTokenMs, accessTokenMs } = server.config.lifetimes;
  await extendAuthorization(transaction, id, transaction.nowMs + refreshTokenMs + accessTokenMs);
}

/** RFC 6749 §6, with rotation. A reuse is refused and revokes; both are committed. */
async function refresh(context: GrantContext, client: Client, parameters: Parameters): Promise<GrantResult> {
  const { server, transaction } = context;
  const draft: RefreshDraft = {
    parameters,
    client,
    authorization: undefined,
    resources: [],
    refreshToken: undefined,
    scope: [],
    successor: undefined,
    reused: false,
  };
  const refusal = await firstRefusal(refreshChecks, draft, context);
  if (refusal !== undefined) {
    if (draft.reused) {
      server.metrics.refreshReuses.increment();
      await revokeAuthorization(transaction, draft.authorization!.id, "refresh token reuse");
    }
    return { refusal };
  }
  const authorization = draft.authorization!;
  await keepAuthorization(context, authorization.id);
  const about = await aboutUser(transaction, client, authorization, draft.scope);
  const accessToken = await prepareAccessToken(server, transaction, {
    client,
    subject: authorization.userId,
    scope: draft.scope,
    audience: audienceOf(context, draft, draft.scope),
    authorizationId: authorization.id,
    authenticatedAtMs: authorization.authenticatedAtMs,
    userClaims: about.inAccessToken,
  });
  const success: TokenSuccess = {
    accessToken,
    refreshToken: draft.successor,
    scope: draft.scope,
    idToken: draft.scope.includes("openid")
      ? { client, authorization: { ...authorization, nonce: undefined }, userClaims: about.inIdToken }
      : undefined,
    nowMs: transaction.nowMs,
  };
  return { success };
}

/** RFC 6749 §4.4: no refresh token comes with it. */
async function actForItself(context: GrantContext, client: Client, parameters: Parameters): Promise<GrantResult> {
  const { server, transaction } = context;
  const draft: ClientCredentialsDraft = { parameters, client, authorization: undefined, resources: [], scope: [] };
  const refusal = await firstRefusal(clientCredentialsChecks, draft, context);
  if (refusal !== undefined) return { refusal };
  const accessToken = await prepareAccessToken(server, transaction, {
    client,
    subject: client.id,
    scope: draft.scope,
    audience: audienceOf(context, draft, draft.scope),
    authorizationId: undefined,
    authenticatedAtMs: undefined,
    userClaims: {},
  });
  const success: TokenSuccess = {
    accessToken,
    refreshToken: undefined,
    scope: draft.scope,
    idToken: undefined,
    nowMs: transaction.nowMs,
  };
  return { success };
}
