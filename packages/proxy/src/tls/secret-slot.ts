// Where a secret of a name and source stands. TLS contexts hold slots; a rotation puts the next version in, new
// connections find it, and nothing else is compiled again.
import { type GrpcTarget, grpcTargetKey } from "../http/grpc-target.ts";
import type { Secret } from "./secret.ts";

/** Where a secret comes from (SdsSecretConfig.sds_config). */
export type SecretSource =
  /** static_resources.secrets of the bootstrap, or inline. */
  | { readonly kind: "static" }
  /** The aggregated stream. */
  | { readonly kind: "ads" }
  /** api_config_source with a static cluster of the bootstrap. */
  | { readonly kind: "grpc"; readonly target: GrpcTarget }
  /** path_config_source: a file that is read again when it, or something in the watched directory, has changed. */
  | { readonly kind: "path"; readonly path: string; readonly watchedDirectory: string | undefined };

export class SecretSlot {
  readonly name: string;
  readonly source: SecretSource;
  /** How long what uses it waits for its first version before it serves without; 0 = for ever. */
  readonly initialFetchTimeoutMs: number;
  #current: Secret | undefined = undefined;
  #version = 0;
  /** Set by whoever fetches it: somebody has waited for it long enough. */
  onTimeout: () => void = () => {};

  constructor(name: string, source: SecretSource, initialFetchTimeoutMs: number) {
    this.name = name;
    this.source = source;
    this.initialFetchTimeoutMs = initialFetchTimeoutMs;
  }

  /** Undefined until it has come, and after it was removed. */
  get current(): Secret | undefined {
    return this.#current;
  }

  /** Another number whenever `current` is another secret. */
  get version(): number {
    return this.#version;
  }

  put(secret: Secret | undefined): void {
    this.#current = secret;
    this.#version += 1;
  }
}

/** A slot with an inline secret. */
export function filledSecretSlot(name: string, secret: Secret): SecretSlot {
  const slot = new SecretSlot(name, { kind: "static" }, 0);
  slot.put(secret);
  return slot;
}

export function secretSourceKey(source: SecretSource): string {
  switch (source.kind) {
    case "grpc":
      return `grpc:${grpcTargetKey(source.target)}`;
    case "path":
      return `path:${JSON.stringify([source.path, source.watchedDirectory])}`;
    default:
      return source.kind;
  }
}

/** Slots by source and name. */
export class SecretSlotTable {
  readonly #slots = new Map<string, SecretSlot>();

  get(name: string, source: SecretSource, initialFetchTimeoutMs: number): SecretSlot {
    const key = `${secretSourceKey(source)} ${name}`;
    let slot = this.#slots.get(key);
    if (slot === undefined) {
      slot = new SecretSlot(name, source, initialFetchTimeoutMs);
      this.#slots.set(key, slot);
    }
    return slot;
  }

  known(name: string, source: SecretSource): SecretSlot | undefined {
    return this.#slots.get(`${secretSourceKey(source)} ${name}`);
  }

  delete(slot: SecretSlot): void {
    this.#slots.delete(`${secretSourceKey(slot.source)} ${slot.name}`);
  }

  values(): IterableIterator<SecretSlot> {
    return this.#slots.values();
  }
}
