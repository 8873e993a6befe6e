// One try for a certificate: a new key, a request signed with it, the authority's answer, and a look at whether it is
// what was asked for.
import { readFile } from "node:fs/promises";
import {
  checkWorkloadCertificate,
  createCsr,
  generateKey,
  privateKeyPem,
  type SpiffeId,
  spiffeIdText,
  type WorkloadCertificate,
} from "@tulle/identity";
import type { SignCertificate, SigningAnswer, SigningCredentials, SigningRequest } from "./certificate-signer.ts";

export interface CertificateRequest {
  readonly spiffeId: SpiffeId;
  readonly sign: SignCertificate;
  /** The platform rewrites it long before it expires; it is read anew for each request. */
  readonly tokenFile: string | undefined;
  readonly current: WorkloadCertificate | undefined;
  /** What the authority is verified with. */
  readonly rootsPem: string;
  readonly now: () => number;
}

export type CertificateOutcome =
  | { readonly ok: true; readonly certificate: WorkloadCertificate }
  | { readonly ok: false; readonly reason: string };

/** The key is new each time, so that a stolen one is worth something only as long as its certificate. */
export async function requestCertificate(request: CertificateRequest): Promise<CertificateOutcome> {
  const { spiffeId, rootsPem, now } = request;
  const key = await generateKey("P-256");
  const csrPem = createCsr({ key, spiffeId });
  const answer = await signWithEither(request, { csrPem, rootsPem });
  if (!answer.ok) return answer;
  const checked = checkWorkloadCertificate(
    { keyPem: privateKeyPem(key), chainPem: answer.chainPem, rootsPem: answer.rootsPem, obtainedAtMs: now() },
    now(),
  );
  if (!checked.ok) return { ok: false, reason: `the authority's certificate is no good here: ${checked.message}` };
  const { certificate } = checked;
  const wanted = spiffeIdText(spiffeId);
  const given = spiffeIdText(certificate.spiffeId);
  return given === wanted
    ? { ok: true, certificate }
    : { ok: false, reason: `the authority vouches for ${given} instead of ${wanted}` };
}

/**
 * The token first: the platform stops rewriting it when the pod is gone, while a certificate could renew itself for
 * ever. The certificate stands in where there is no token, or none that the authority believes.
 */
async function signWithEither(
  { sign, tokenFile, current, now }: CertificateRequest,
  request: Omit<SigningRequest, "credentials">,
): Promise<SigningAnswer> {
  const usable = current !== undefined && current.leaf.notAfterMs > now() ? current : undefined;
  const byCertificate: SigningCredentials | undefined = usable && { kind: "certificate", certificate: usable };
  const token = tokenFile === undefined ? "" : await readToken(tokenFile);
  if (typeof token === "string" && token !== "") {
    const answer = await sign({ ...request, credentials: { kind: "token", token } });
    if (answer.ok || answer.kind === "other" || byCertificate === undefined) return answer;
  }
  if (byCertificate !== undefined) return sign({ ...request, credentials: byCertificate });
  const reason = typeof token === "string" ? noToken(tokenFile) : token.reason;
  return { ok: false, kind: "credentials", reason };
}

function noToken(tokenFile: string | undefined): string {
  return tokenFile === undefined
    ? "there is no token to ask with: TULLE_TOKEN_FILE is not set"
    : `there is no token to ask with: ${tokenFile} is empty`;
}

async function readToken(file: string): Promise<string | { readonly reason: string }> {
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { reason: `there is no token to ask with: ${file} cannot be read (${code ?? String(error)})` };
  }
}
