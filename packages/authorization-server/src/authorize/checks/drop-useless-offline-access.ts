// OpenID Connect Core §11: offline_access is ignored where no refresh token can come of it.
import type { AuthorizeDraft } from "../draft.ts";

export function dropUselessOfflineAccess(draft: AuthorizeDraft): undefined {
  if (!draft.client.grantTypes.includes("refresh_token"))
    draft.scope = draft.scope.filter((token) => token !== "offline_access");
  return undefined;
}
