// PEM (RFC 7468), the form in which certificates, keys and requests lie on disk and travel over gRPC.

export interface PemBlock {
  readonly label: string;
  readonly der: Buffer;
}

const blockPattern = /-----BEGIN ([A-Z0-9 ]{1,64})-----[ \t]*\r?\n([A-Za-z0-9+/=\s]*?)-----END \1-----/g;

/** One block with lines of 64 characters and a final newline. */
export function pemText(label: string, der: Uint8Array): string {
  const base64 = Buffer.from(der).toString("base64");
  const lines = base64.match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}

/**
 * All blocks of a text, in order; text around them is explanation (RFC 7468 §2). Undefined when a block is not closed
 * or holds anything but canonical base64: what is half readable must not be half trusted.
 */
export function parsePem(text: string): readonly PemBlock[] | undefined {
  const blocks: PemBlock[] = [];
  for (const match of text.matchAll(blockPattern)) {
    const base64 = match[2]!.replaceAll(/\s+/g, "");
    const der = Buffer.from(base64, "base64");
    if (der.toString("base64") !== base64) return undefined;
    blocks.push({ label: match[1]!, der });
  }
  const begun = text.match(/-----BEGIN /g)?.length ?? 0;
  return begun === blocks.length ? blocks : undefined;
}
