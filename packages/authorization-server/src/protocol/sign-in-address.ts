// Where somebody signs in, and for which request: the address carries it, so that nothing is kept for who has not
// signed in.

/** No line of a request is longer than this, so that every proxy passes it. */
const maxAddressCharacters = 12_000;

/** `parameters` is an authorization request, undecoded; empty on the way to the owner's own page. */
export function signInAddress(issuer: string, parameters: string): string {
  return withQuery(`${issuer}/sign-in`, parameters);
}

export function withQuery(address: string, parameters: string): string {
  return parameters === "" ? address : `${address}?${asQuery(parameters)}`;
}

export function fitsAddress(parameters: string): boolean {
  return asQuery(parameters).length <= maxAddressCharacters;
}

/** A form's text may hold bytes that an address may not; decoded, both say the same. */
function asQuery(parameters: string): string {
  return parameters.replace(
    /[^\x21\x22\x24-\x7e]/g,
    (character) => `%${character.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}
