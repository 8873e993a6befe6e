// The mesh's roots, from a control plane that nobody is known to be yet: it shows them in its handshake, and those are
// believed that the token pins. Nothing is sent to it before.
import { connect, type DetailedPeerCertificate } from "node:tls";
import { parseCertificate, rootPin } from "@tulle/identity";
import { minTlsVersion } from "@tulle/xds";
import { controlPlaneName } from "../identity/client-tls.ts";

const timeoutMs = 10_000;
/** A chain is no longer than this; Node links a root to itself. */
const maxCertificates = 16;

export type LearnedRoots =
  | { readonly ok: true; readonly rootsPem: string }
  | { readonly ok: false; readonly reason: string };

/** Never rejects. */
export function learnRoots(controlPlane: string, rootPins: readonly string[]): Promise<LearnedRoots> {
  const { hostname, port } = new URL(`https://${controlPlane}`);
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  const { promise, resolve } = Promise.withResolvers<LearnedRoots>();
  const refuse = (reason: string): void => resolve({ ok: false, reason: `${controlPlane}: ${reason}` });
  const socket = connect({
    host,
    port: Number(port || 443),
    servername: controlPlaneName,
    minVersion: minTlsVersion,
    // Who it is, the pins say.
    rejectUnauthorized: false,
    timeout: timeoutMs,
    ALPNProtocols: ["h2"],
  });
  socket.once("secureConnect", () => {
    const pinned = shownCertificates(socket.getPeerCertificate(true)).filter((raw) => isPinned(raw, rootPins));
    if (pinned.length > 0) resolve({ ok: true, rootsPem: pinned.map(pemOf).join("") });
    else refuse("it shows none of the roots that the token is for: it is not the control plane that made it");
    socket.destroy();
  });
  socket.once("timeout", () => {
    refuse(`no answer in ${timeoutMs / 1000} s`);
    socket.destroy();
  });
  socket.once("error", (error) => refuse(error.message));
  socket.once("close", () => refuse("it closed the connection"));
  return promise;
}

function shownCertificates(leaf: DetailedPeerCertificate): readonly Buffer[] {
  const shown: Buffer[] = [];
  let next: DetailedPeerCertificate | undefined = leaf;
  while (next?.raw !== undefined && shown.length < maxCertificates && !shown.some((raw) => raw.equals(next!.raw))) {
    shown.push(next.raw);
    next = next.issuerCertificate;
  }
  return shown;
}

function isPinned(raw: Buffer, pins: readonly string[]): boolean {
  const parsed = parseCertificate(raw);
  return parsed.ok && pins.includes(rootPin(parsed.certificate));
}

function pemOf(raw: Buffer): string {
  const parsed = parseCertificate(raw);
  return parsed.ok ? parsed.certificate.pem : "";
}
