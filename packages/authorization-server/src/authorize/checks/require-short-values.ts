// What is stored or echoed for the client has a limit, so that a request cannot be used to fill the database.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { AuthorizeDraft } from "../draft.ts";

const maxCharacters = 2048;

export function requireShortValues({ parameters }: AuthorizeDraft): Refusal | undefined {
  for (const name of ["nonce", "state", "login_hint", "scope"]) {
    if ((parameters.get(name)?.length ?? 0) > maxCharacters)
      return refuse("invalid_request", `the parameter ${name} is longer than ${maxCharacters} characters`);
  }
  return undefined;
}
