// RFC 6749 Appendix B: parameters are UTF-8; Appendix A allows control characters in none of them.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { Parameters } from "../../protocol/parameters.ts";

export function requireReadableParameters({ parameters }: { readonly parameters: Parameters }): Refusal | undefined {
  const [name] = parameters.malformed;
  if (name === undefined) return undefined;
  return refuse(
    "invalid_request",
    `the parameter ${name} is not valid percent-encoded UTF-8, or holds control characters`,
  );
}
