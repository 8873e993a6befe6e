// What is stored or echoed for the client has a limit, so that a request cannot be used to fill the database.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { AuthorizeDraft } from "../draft.ts";

const maxCharacters = 2048;
/** Several clients keep all that they have to remember in it. */
const maxStateCharacters = 8192;

export function requireShortValues({ parameters }: AuthorizeDraft): Refusal | undefined {
  for (const name of ["nonce", "state", "login_hint", "scope"]) {
    const most = name === "state" ? maxStateCharacters : maxCharacters;
    if ((parameters.get(name)?.length ?? 0) > most)
      return refuse("invalid_request", `the parameter ${name} is longer than ${most} characters`);
  }
  return undefined;
}
