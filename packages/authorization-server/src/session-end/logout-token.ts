// Logout tokens (OpenID Connect Back-Channel Logout 1.0 §2.4): a client that gets one drops the session that it names.
import { newId } from "../crypto/secrets.ts";
import type { ServerContext } from "../server-context.ts";
import type { Client } from "../store/clients.ts";
import type { LogoutNotice } from "../store/logout-notices.ts";

/** §2.4 wants two minutes at most. */
const lifetimeSeconds = 120;

/** `sid` is always there, so a client's `backchannel_logout_session_required` is always met. */
export function writeLogoutToken(
  { config, keys }: ServerContext,
  client: Client,
  { userId, sessionId }: LogoutNotice,
  nowMs: number,
): string {
  const seconds = Math.floor(nowMs / 1000);
  return keys.sign(client.idTokenAlgorithm ?? config.signingAlgorithm, "logout+jwt", {
    iss: config.issuer,
    sub: userId,
    aud: client.id,
    iat: seconds,
    exp: seconds + lifetimeSeconds,
    jti: newId(),
    sid: sessionId,
    events: { "http://schemas.openid.net/event/backchannel-logout": {} },
  });
}
