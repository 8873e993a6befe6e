// Checking a password. Guesses are counted by account and network together, and more widely by each alone; a browser
// that the owner has signed in with before has a counter of its own, so that guesses from elsewhere never keep the
// owner out. An attempt is counted before it is verified, so that parallel guesses cannot slip through, and answered in
// the same time for unknown names.
import type { Asker } from "../crypto/passwords.ts";
import { maxPasswordCharacters } from "../crypto/passwords.ts";
import { networkOf, siteOf } from "../http/client-address.ts";
import type { KnownDevice } from "../http/known-device.ts";
import type { EndpointRequest } from "../http/messages.ts";
import type { ServerContext } from "../server-context.ts";
import type { Throttled } from "../store/throttles.ts";
import {
  accountThrottle,
  countFailure,
  forgetFailures,
  networkThrottle,
  passwordThrottle,
  throttleState,
  uncountFailure,
} from "../store/throttles.ts";
import type { User } from "../store/users.ts";
import { canonicalUserName, findUserByName } from "../store/users.ts";

export type SignInResult =
  | { readonly outcome: "success"; readonly user: User; readonly deviceCookie: string }
  | { readonly outcome: "wrong" }
  | { readonly outcome: "throttled" | "busy"; readonly retryAfterSeconds: number };

export interface SignInAttempt {
  readonly username: string;
  readonly password: string;
  readonly request: EndpointRequest;
}

export async function signIn(server: ServerContext, attempt: SignInAttempt): Promise<SignInResult> {
  const { database, passwords, metrics, audit } = server;
  const { address } = attempt.request;
  const { user, device, asker, throttled, waitMs, nowMs } = await admit(server, attempt);
  if (waitMs > 0) {
    metrics.logins("throttled").increment();
    audit.record({ event: "sign-in throttled", address, error: "throttled" });
    return { outcome: "throttled", retryAfterSeconds: Math.ceil(waitMs / 1000) };
  }
  const usable = user?.disabledAtMs === undefined ? user : undefined;
  const tooLong = attempt.password.length > maxPasswordCharacters;
  const verdict = await passwords.verify(usable?.passwordHash, tooLong ? "" : attempt.password, asker);
  if (typeof verdict !== "boolean") {
    // Nobody has looked at the password: it is no wrong one.
    await database.transaction((transaction) => uncountFailure(transaction, throttled));
    metrics.logins("busy").increment();
    return { outcome: "busy", retryAfterSeconds: Math.max(1, Math.ceil(verdict.waitMs / 1000)) };
  }
  if (!verdict || usable === undefined) {
    metrics.logins("failure").increment();
    const reason = user === undefined ? "unknown user name" : usable === undefined ? "disabled user" : "wrong password";
    audit.record({ event: "sign-in failed", error: "wrong credentials", reason, userId: user?.id, address });
    return { outcome: "wrong" };
  }
  await database.transaction(async (transaction) => {
    // The narrowest counter begins anew; the wide ones hold what others have guessed.
    const [own, ...wide] = throttled;
    await forgetFailures(transaction, own);
    await uncountFailure(transaction, wide);
  });
  metrics.logins("success").increment();
  audit.record({ event: "signed in", userId: usable.id, address });
  return { outcome: "success", user: usable, deviceCookie: server.devices.remember(usable.id, device, nowMs) };
}

interface Admission {
  readonly user: User | undefined;
  readonly device: KnownDevice | undefined;
  readonly asker: Asker;
  readonly throttled: readonly [Throttled, ...Throttled[]];
  /** 0 where the attempt is free; then it is counted. */
  readonly waitMs: number;
  readonly nowMs: number;
}

async function admit(server: ServerContext, { username, request }: SignInAttempt): Promise<Admission> {
  return server.database.transaction(async (transaction) => {
    const { nowMs } = transaction;
    const user = await findUserByName(transaction, username);
    const device = server.devices.read(request, nowMs);
    const isOwners = device !== undefined && device.userId === user?.id;
    const throttled = isOwners ? ofDevice(device) : ofAnybody(username, networkOf(request.address));
    const asker = { name: isOwners ? device.userId : siteOf(request.address), isKnown: isOwners };
    const waitMs = await throttleState(transaction, throttled);
    if (waitMs === 0) await countFailure(transaction, throttled);
    return { user, device, asker, throttled, waitMs, nowMs };
  });
}

function ofDevice({ id }: KnownDevice): readonly [Throttled] {
  return [{ policy: passwordThrottle, subject: `device\n${id}` }];
}

function ofAnybody(username: string, network: string): readonly [Throttled, Throttled, Throttled] {
  const account = canonicalUserName(username);
  return [
    { policy: passwordThrottle, subject: `password\n${account}\n${network}` },
    { policy: accountThrottle, subject: `account\n${account}` },
    { policy: networkThrottle, subject: `network\n${network}` },
  ];
}
