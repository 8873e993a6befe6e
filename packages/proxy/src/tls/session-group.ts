// Which group a handshake's keys were exchanged in, as a server knows it: out of OpenSSL's session, since Node tells it
// to clients alone.
import type { TLSSocket } from "node:tls";

/** By the numbers of IANA's registry "TLS Supported Groups", in Envoy's words. */
const groupNames = new Map([
  [23, "P-256"],
  [24, "P-384"],
  [25, "P-521"],
  [29, "X25519"],
  [30, "X448"],
  [256, "ffdhe2048"],
  [257, "ffdhe3072"],
  [258, "ffdhe4096"],
  [259, "ffdhe6144"],
  [260, "ffdhe8192"],
  [4587, "SecP256r1MLKEM768"],
  [4588, "X25519MLKEM768"],
  [4589, "SecP384r1MLKEM1024"],
]);

/** Of the field [19] of `SSL_SESSION`, an INTEGER. */
const groupTag = 0xb3;

/** Such as `X25519MLKEM768`; empty where there was no exchange of keys, or the socket is gone. 10 µs. */
export function sessionGroup(socket: TLSSocket): string {
  const handle = (socket as unknown as { _handle?: { getSession(): Buffer | undefined } | null })._handle;
  const session = handle?.getSession();
  if (session === undefined) return "";
  // The fields of one SEQUENCE, of one byte of tag each.
  let position = valueAt(session, 0);
  while (position < session.length) {
    const start = valueAt(session, position);
    const end = start + lengthAt(session, position);
    if (session[position] === groupTag) {
      const bytes = session[start + 1]!;
      return groupNames.get(session.readUIntBE(start + 2, bytes)) ?? "";
    }
    position = end;
  }
  return "";
}

function valueAt(der: Buffer, position: number): number {
  const first = der[position + 1]!;
  return position + 2 + (first < 0x80 ? 0 : first & 0x7f);
}

function lengthAt(der: Buffer, position: number): number {
  const first = der[position + 1]!;
  return first < 0x80 ? first : der.readUIntBE(position + 2, first & 0x7f);
}
