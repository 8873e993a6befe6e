// What can be read of TLS from outside: the records of a byte stream, and the version that a server chose.

export interface TlsRecord {
  /** 20 change_cipher_spec, 21 alert, 22 handshake, 23 application_data. */
  readonly type: number;
  /** As the record's header says, which TLS 1.3 keeps at 0x0303 (RFC 8446 §5.1). */
  readonly legacyVersion: number;
  readonly body: Buffer;
}

const headerBytes = 5;
/** RFC 8446 §5.2: of an encrypted record. */
const maxBodyBytes = 2 ** 14 + 256;

/** @throws when the bytes are anything but whole records; a last one that has not come yet is left out */
export function tlsRecords(bytes: Buffer): readonly TlsRecord[] {
  const records: TlsRecord[] = [];
  let at = 0;
  while (at + headerBytes <= bytes.length) {
    const [type = 0, major = 0] = bytes.subarray(at);
    const length = bytes.readUInt16BE(at + 3);
    if (type < 20 || type > 23 || major !== 3 || length > maxBodyBytes) {
      const shown = JSON.stringify(bytes.subarray(at, at + 40).toString("latin1"));
      throw new Error(`no TLS record at byte ${at}: ${shown}`);
    }
    const legacyVersion = bytes.readUInt16BE(at + 1);
    const body = bytes.subarray(at + headerBytes, at + headerBytes + length);
    if (body.length < length) break;
    records.push({ type, legacyVersion, body });
    at += headerBytes + length;
  }
  return records;
}

const serverHello = 2;
const supportedVersions = 43;

/**
 * The version of a ServerHello: what its extension says (RFC 8446 §4.2.1), else its own field. Undefined for another
 * message.
 */
export function negotiatedVersion({ type, body }: TlsRecord): number | undefined {
  if (type !== 22 || body[0] !== serverHello) return undefined;
  // Type and length (4), version (2), random (32), session id, cipher suite (2), compression (1), length of extensions
  // (2).
  const sessionIdBytes = body[38]!;
  let at = 39 + sessionIdBytes + 3 + 2;
  while (at + 4 <= body.length) {
    const length = body.readUInt16BE(at + 2);
    if (body.readUInt16BE(at) === supportedVersions) return body.readUInt16BE(at + 4);
    at += 4 + length;
  }
  return body.readUInt16BE(4);
}
