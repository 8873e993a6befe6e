// What access tokens look like for their audience: the algorithm of the signature, and the type in the header.
import type { JwtType, SigningAlgorithm } from "../keys/jwt.ts";
import { signingAlgorithms } from "../keys/jwt.ts";

export interface TokenForm {
  readonly algorithm: SigningAlgorithm;
  /** RFC 9068 §2.1 asks for `at+jwt`; several resource servers take nothing but `JWT` unless they are told to. */
  readonly type: JwtType;
}

const types: readonly JwtType[] = ["JWT", "at+jwt"];

/** `text` names an algorithm, a type or both; what it leaves out is as everywhere. */
export function tokenForm(text: string, otherwise: TokenForm): TokenForm {
  const words = text.split(/ +/);
  return {
    algorithm: signingAlgorithms.find((algorithm) => words.includes(algorithm)) ?? otherwise.algorithm,
    type: types.find((type) => words.includes(type)) ?? otherwise.type,
  };
}

const form = /^(?:(?:RS256|ES256)(?: +(?:JWT|at\+jwt))?|JWT|at\+jwt)$/;

export function* tokenFormProblems(entries: ReadonlyArray<readonly [string, string]>): Iterable<string> {
  for (const [audience, text] of entries) {
    if (!URL.canParse(audience)) yield `the audience "${audience}" is no absolute URI`;
    if (!form.test(text))
      yield `"${text}" for ${audience} is neither an algorithm (RS256, ES256) nor a type (JWT, at+jwt) nor both in this order`;
  }
}
