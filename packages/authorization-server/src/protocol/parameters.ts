// Strict reader of `application/x-www-form-urlencoded` text, for query strings and bodies alike. It repairs nothing:
// what is repeated or cannot be decoded is remembered by name, so that a check can refuse it with a useful description.

export interface ParameterLimits {
  readonly maxParameters: number;
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Decodes one form-encoded half; undefined when its percent-encoding or its UTF-8 is broken. */
export function decodeFormText(text: string): string | undefined {
  if (!/[%+]/.test(text)) {
    // oxlint-disable-next-line no-control-regex -- raw bytes beyond ASCII are what is being looked for
    if (/^[\x00-\x7f]*$/.test(text)) return text;
    return decodeUtf8(Buffer.from(text, "latin1"));
  }
  const spaced = text.replaceAll("+", " ");
  if (/%(?![0-9A-Fa-f]{2})/.test(spaced)) return undefined;
  const bytes = spaced.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return decodeUtf8(Buffer.from(bytes, "latin1"));
}

function decodeUtf8(bytes: Buffer): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

export function encodeFormText(text: string): string {
  return new URLSearchParams([["", text]]).toString().slice(1);
}

/** The parameters of one request. A parameter without a value counts as omitted (RFC 6749 §3.1). */
export class Parameters {
  readonly #values = new Map<string, string[]>();
  readonly #raw = new Map<string, string>();
  readonly #seen = new Set<string>();
  readonly #repeated = new Set<string>();
  readonly #malformed = new Set<string>();
  #tooMany = false;
  #textLength = 0;

  /** `text` is the undecoded form as latin1, without a leading `?`. */
  static parse(text: string, limits: ParameterLimits = { maxParameters: 100 }): Parameters {
    const parameters = new Parameters();
    parameters.#textLength = text.length;
    if (text === "") return parameters;
    const pairs = text.split("&");
    parameters.#tooMany = pairs.length > limits.maxParameters;
    for (const pair of pairs.slice(0, limits.maxParameters)) parameters.#add(pair);
    return parameters;
  }

  #add(pair: string): void {
    if (pair === "") return;
    const equals = pair.indexOf("=");
    const rawName = equals < 0 ? pair : pair.slice(0, equals);
    const rawValue = equals < 0 ? "" : pair.slice(equals + 1);
    const name = decodeFormText(rawName);
    if (name === undefined) {
      this.#malformed.add("(name)");
      return;
    }
    if (this.#seen.has(name)) this.#repeated.add(name);
    this.#seen.add(name);
    if (rawValue !== "" && !this.#raw.has(name)) this.#raw.set(name, rawValue);
    const value = decodeFormText(rawValue);
    if (value === undefined || /\p{Cc}/u.test(value)) {
      this.#malformed.add(name);
      return;
    }
    if (value === "") return;
    const values = this.#values.get(name);
    if (values === undefined) this.#values.set(name, [value]);
    else values.push(value);
  }

  /** The first value; undefined when omitted or empty. */
  get(name: string): string | undefined {
    return this.#values.get(name)?.[0];
  }

  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }

  /** The first value as it was encoded by the sender, readable or not, for an echo that is the same byte for byte. */
  raw(name: string): string | undefined {
    return this.#raw.get(name);
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** Names that were sent more than once, empty values included. */
  get repeated(): ReadonlySet<string> {
    return this.#repeated;
  }

  /** Names whose value is no valid percent-encoded UTF-8, or holds control characters. */
  get malformed(): ReadonlySet<string> {
    return this.#malformed;
  }

  get tooMany(): boolean {
    return this.#tooMany;
  }

  /** Length of the undecoded text, in bytes. */
  get textLength(): number {
    return this.#textLength;
  }
}
