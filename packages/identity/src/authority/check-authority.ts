// Checks key, certificate, chain and roots that somebody brings along before anything is signed with them; all problems
// at once, by file.
import { keyProblem } from "../keys/key-algorithm.ts";
import { parsePrivateKey, publicKeyInfo } from "../keys/private-key.ts";
import { type Certificate, parseCertificates } from "../x509/certificate.ts";
import { authorityFailure, type PathFailureReason, verifyPath } from "../x509/verify-path.ts";
import type { AuthorityMaterial } from "./authority-material.ts";

export interface AuthorityPem {
  /** The certificate that signs; further ones in the same text count as chain. */
  readonly certificate: string;
  readonly key: string;
  /** Between it and the root; the certificate itself and the root may stand in it too, as in Istio's folder. */
  readonly chain?: string;
  readonly roots: string;
}

export interface AuthorityProblem {
  readonly code: PathFailureReason | "missing" | "unreadable" | "key-mismatch" | "unsuitable-key";
  /** The file's name, or the part where there is no file. */
  readonly file: string;
  readonly message: string;
}

export type CheckedAuthority =
  | { readonly ok: true; readonly material: AuthorityMaterial }
  | { readonly ok: false; readonly problems: readonly AuthorityProblem[] };

/** How messages name the parts. */
export interface AuthorityFileNames {
  readonly certificate: string;
  readonly key: string;
  readonly chain: string;
  readonly roots: string;
}

export function checkAuthority(pem: AuthorityPem, files: AuthorityFileNames, nowMs: number): CheckedAuthority {
  const problems: AuthorityProblem[] = [];
  const read = (text: string, file: string): readonly Certificate[] => {
    const parsed = parseCertificates(text);
    if (!parsed.ok) problems.push({ code: "unreadable", file, message: `${file}: ${parsed.message}` });
    return parsed.ok ? parsed.certificates : [];
  };
  const [certificate, ...more] = read(pem.certificate, files.certificate);
  const chain = pem.chain === undefined || pem.chain.trim() === "" ? [] : read(pem.chain, files.chain);
  const roots = read(pem.roots, files.roots);
  const key = parsePrivateKey(pem.key);
  if (key === undefined) {
    const message = `${files.key}: there is no private key in it that could be read without a passphrase`;
    problems.push({ code: "unreadable", file: files.key, message });
  }
  if (certificate === undefined || key === undefined || problems.length > 0) return { ok: false, problems };

  const weakness = keyProblem(key);
  if (weakness !== undefined) {
    problems.push({ code: "unsuitable-key", file: files.key, message: `${files.key}: ${weakness}` });
  } else if (!publicKeyInfo(key).equals(publicKeyInfo(certificate.publicKey))) {
    const message = `${files.key} does not belong to ${files.certificate}: the public keys differ`;
    problems.push({ code: "key-mismatch", file: files.key, message });
  }
  const notAuthority = authorityFailure(certificate);
  if (notAuthority !== undefined) problems.push(problemAt(files.certificate, notAuthority));
  for (const root of roots) {
    const failure = authorityFailure(root);
    if (failure !== undefined) problems.push(problemAt(files.roots, failure));
  }
  const verified = verifyPath({ certificate, intermediates: [...more, ...chain], roots, nowMs });
  if (!verified.ok) {
    const problem = problemAt(files.certificate, verified);
    const hint = verified.reason === "foreign-authority" ? `: no way through ${files.chain} to ${files.roots}` : "";
    problems.push({ ...problem, message: problem.message + hint });
  }
  if (!verified.ok || problems.length > 0) return { ok: false, problems };
  return { ok: true, material: { certificate, key, chain: verified.path.slice(0, -1), roots } };
}

function problemAt(
  file: string,
  failure: { readonly reason: PathFailureReason; readonly message: string },
): AuthorityProblem {
  return { code: failure.reason, file, message: `${file}: ${failure.message}` };
}
