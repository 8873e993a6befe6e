// RFC 6749 §3.1: parameters are not repeated; `resource` may be (RFC 8707 §2).
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { Parameters } from "../../protocol/parameters.ts";

export function requireSingleParameters({ parameters }: { readonly parameters: Parameters }): Refusal | undefined {
  if (parameters.tooMany) return refuse("invalid_request", "the request has more than 100 parameters");
  for (const name of parameters.repeated) {
    if (name !== "resource") return refuse("invalid_request", `the parameter ${name} was sent more than once`);
  }
  return undefined;
}
