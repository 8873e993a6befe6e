// OpenID Connect Core §5.5: a `sub` that is asked for by value is answered for that user alone, and an essential `acr`
// that no sign-in here can reach is refused at once. Whatever else is asked for says only where it should be told.
import { authenticationContext } from "../../protocol/authentication-context.ts";
import { maxClaimsRequestCharacters, parseClaimsRequest } from "../../protocol/claims-request.ts";
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { ServerContext } from "../../server-context.ts";
import type { AuthorizeDraft } from "../draft.ts";

export function requirePossibleClaims(draft: AuthorizeDraft, { config }: ServerContext): Refusal | undefined {
  const text = draft.parameters.get("claims");
  // OAuth 2.0 alone does not know it: without openid it is one of the parameters to ignore.
  if (text === undefined || !draft.scope.includes("openid")) return undefined;
  if (text.length > maxClaimsRequestCharacters)
    return refuse("invalid_request", `claims is longer than ${maxClaimsRequestCharacters} characters`);
  const asked = parseClaimsRequest(text);
  if (asked === undefined)
    return refuse("invalid_request", "claims is not the JSON object of OpenID Connect Core section 5.5");
  for (const claims of [asked.idToken, asked.userinfo]) {
    const subjects = claims.get("sub")?.values;
    if (subjects !== undefined) draft.wantedSubjects.push(new Set(subjects));
  }
  const acr = asked.idToken.get("acr");
  const reached = authenticationContext(config);
  if (acr?.essential === true && acr.values?.includes(reached) === false)
    return refuse(
      "unmet_authentication_requirements",
      `no sign-in here is of the acr that claims asks for: it is ${reached}`,
    );
  draft.idTokenClaims = [...asked.idToken.keys()];
  return undefined;
}
