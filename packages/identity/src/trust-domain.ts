// Trust domains: the part of a SPIFFE id that names who vouches for it (SPIFFE-ID §2.1). Configuration is checked with
// this before anything is signed in its name.

const allowed = /^[a-z0-9._-]+$/;

/** What is wrong with a trust domain, as text for the user; undefined for a good one such as `cluster.local`. */
export function trustDomainProblem(text: string): string | undefined {
  if (text === "") return "a trust domain must not be empty";
  if (text.length > 255) return `a trust domain has at most 255 characters, this one has ${text.length}`;
  if (allowed.test(text)) return undefined;
  if (/^spiffe:/i.test(text)) return `"${text}" is a SPIFFE id; the trust domain is the part after spiffe://`;
  return `"${text}" is no trust domain: only lower-case letters, digits, ".", "-" and "_" may stand in one`;
}
