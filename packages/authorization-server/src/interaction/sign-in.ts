// Checking a password: throttled by account and address together, counted before it is verified so that parallel
// guesses cannot slip through, and answered in the same time for unknown names.
import { maxPasswordCharacters } from "../crypto/passwords.ts";
import type { ServerContext } from "../server-context.ts";
import { countFailure, forgetFailures, passwordThrottle, throttleState } from "../store/throttles.ts";
import type { User } from "../store/users.ts";
import { canonicalUserName, findUserByName } from "../store/users.ts";

export type SignInResult =
  | { readonly outcome: "success"; readonly user: User }
  | { readonly outcome: "wrong" }
  | { readonly outcome: "throttled"; readonly waitMs: number }
  | { readonly outcome: "busy" };

export async function signIn(
  server: ServerContext,
  attempt: { readonly username: string; readonly password: string; readonly address: string },
): Promise<SignInResult> {
  const { database, passwords, metrics, audit } = server;
  const subject = `password\n${canonicalUserName(attempt.username)}\n${attempt.address}`;
  const state = await database.transaction(async (transaction) => {
    const waitMs = await throttleState(transaction, passwordThrottle, subject);
    if (waitMs > 0) return { waitMs, user: undefined };
    await countFailure(transaction, passwordThrottle, subject);
    return { waitMs, user: await findUserByName(transaction, attempt.username) };
  });
  if (state.waitMs > 0) {
    metrics.logins("throttled").increment();
    audit.record({ event: "sign-in throttled", address: attempt.address, error: "throttled", userId: undefined });
    return { outcome: "throttled", waitMs: state.waitMs };
  }
  const usable = state.user?.disabledAtMs === undefined ? state.user : undefined;
  const tooLong = attempt.password.length > maxPasswordCharacters;
  const verdict = await passwords.verify(usable?.passwordHash, tooLong ? "" : attempt.password);
  if (verdict === "busy") return { outcome: "busy" };
  if (!verdict || usable === undefined) {
    metrics.logins("failure").increment();
    const reason =
      state.user === undefined ? "unknown user name" : usable === undefined ? "disabled user" : "wrong password";
    audit.record({
      event: "sign-in failed",
      error: "wrong credentials",
      reason,
      userId: state.user?.id,
      address: attempt.address,
    });
    return { outcome: "wrong" };
  }
  await database.transaction((transaction) => forgetFailures(transaction, subject));
  metrics.logins("success").increment();
  audit.record({ event: "signed in", userId: usable.id, address: attempt.address });
  return { outcome: "success", user: usable };
}
