// A browser in which somebody has signed in is known by a sealed cookie: guesses from elsewhere at its owner's password
// never make it wait (OWASP, "Slow down online guessing attacks with device cookies").
import { hkdfSync } from "node:crypto";
import { seal, unseal } from "../crypto/sealing.ts";
import { newId } from "../crypto/secrets.ts";
import type { Config } from "../config/config.ts";
import type { EndpointRequest } from "./messages.ts";
import { readCookie, setCookie } from "./cookies.ts";

const lifetimeMs = 180 * 86_400_000;
const context = "known device";

export interface KnownDevice {
  readonly id: string;
  /** Who has signed in there last. */
  readonly userId: string;
}

interface Sealed extends KnownDevice {
  readonly expiresAtMs: number;
}

export class KnownDevices {
  readonly #config: Config;
  readonly #key: Buffer;

  /** `keyEncryptionKey` is the same in all processes of one store. */
  constructor(config: Config, keyEncryptionKey: Buffer) {
    this.#config = config;
    this.#key = Buffer.from(hkdfSync("sha256", keyEncryptionKey, "", context, 32));
  }

  read(request: EndpointRequest, nowMs: number): KnownDevice | undefined {
    const cookie = readCookie(this.#config, request.headers.cookie, "device");
    const text = cookie === undefined ? undefined : unseal(this.#key, cookie, context);
    if (text === undefined) return undefined;
    const { id, userId, expiresAtMs } = JSON.parse(text) as Sealed;
    return expiresAtMs > nowMs ? { id, userId } : undefined;
  }

  /** The `Set-Cookie` by which the browser is known from now on. */
  remember(userId: string, before: KnownDevice | undefined, nowMs: number): string {
    const id = before?.userId === userId ? before.id : newId();
    const sealed: Sealed = { id, userId, expiresAtMs: nowMs + lifetimeMs };
    return setCookie(this.#config, "device", seal(this.#key, JSON.stringify(sealed), context), lifetimeMs);
  }
}
