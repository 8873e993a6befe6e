// What tokens and userinfo tell of a user, by the scopes that the owner has allowed: `profile` and `email` as OpenID
// Connect Core §5.4 has them; each claim of the user's own (roles, groups, …) by the scope of its name.
import type { User, UserClaims } from "../store/users.ts";

/** Scopes that say nothing of a claim of the user's own. */
export const standardScopes: readonly string[] = ["openid", "profile", "email", "offline_access"];

/** For access tokens (RFC 9068 §2.2.3), which resource servers read: nothing of `profile` and `email`. */
export function ownClaims(user: User, scope: readonly string[]): UserClaims {
  const names = scope.filter((name) => !standardScopes.includes(name) && Object.hasOwn(user.claims, name));
  return Object.fromEntries(names.map((name) => [name, user.claims[name]]));
}

/** For userinfo, and for ID tokens of clients that want them there. */
export function identityClaims(user: User, scope: readonly string[]): UserClaims {
  const profile = scope.includes("profile")
    ? { name: user.displayName ?? user.name, preferred_username: user.name }
    : {};
  const email =
    scope.includes("email") && user.email !== undefined
      ? { email: user.email, email_verified: user.emailVerified }
      : {};
  return { ...ownClaims(user, scope), ...profile, ...email };
}
