// Puts secrets into their slots. What is compiled says which slots it needs; where they come from is asked of whoever
// has the streams and files. A secret that is accepted serves at once, a bad one is refused by name and the one before
// it stays.
import type { ResourceError, Verdict } from "@tulle/xds";
import type { Secret as SecretMessage } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import { compileSecret } from "../compile/compile-secret.ts";
import { problemsText } from "../fields/problems.ts";
import type { ResourceRecord } from "../runtime/config-records.ts";
import { type SecretSlot, type SecretSource, secretSourceKey } from "../tls/secret-slot.ts";
import type { SecretNeed, SecretUpdate } from "./config-update.ts";
import type { ConfigTargets } from "./load-static-resources.ts";
import { secretPlace, SubscriptionStats } from "./subscription-stats.ts";

/** What uses secrets; each says all that it needs whenever that has changed. */
export type SecretUser = "static resources" | "clusters" | "listeners";

export interface AppliedSecretsOptions extends ConfigTargets {
  /** All that is needed now, one entry a source. */
  readonly onNeeds: (needs: readonly SecretNeed[]) => void;
}

export class AppliedSecrets {
  readonly #options: AppliedSecretsOptions;
  readonly #needs = new Map<SecretUser, ReadonlySet<SecretSlot>>();
  /** Version of what each slot serves. */
  readonly #served = new WeakMap<SecretSlot, string>();
  readonly #changeListeners: ((changed: ReadonlySet<SecretSlot>) => void)[] = [];

  constructor(options: AppliedSecretsOptions) {
    this.#options = options;
  }

  /** Called after each update that brought something. */
  onChange(listener: (changed: ReadonlySet<SecretSlot>) => void): void {
    this.#changeListeners.push(listener);
  }

  need(user: SecretUser, slots: ReadonlySet<SecretSlot>): void {
    this.#needs.set(user, slots);
    const all = new Set([...this.#needs.values()].flatMap((needed) => [...needed]));
    this.#forget(all);
    const bySource = new Map<string, { readonly source: SecretSource; readonly names: Set<string> }>();
    for (const slot of all) {
      const { source, name } = slot;
      if (source.kind === "static") continue;
      // Shown as warming until it has come.
      this.#recordOf(slot);
      slot.onTimeout = () => this.#statsOf(slot).onTimeout();
      const key = secretSourceKey(source);
      const known = bySource.get(key);
      if (known === undefined) bySource.set(key, { source, names: new Set([name]) });
      else known.names.add(name);
    }
    this.#options.onNeeds([...bySource.values()]);
  }

  /** Takes what one response, or one file, of that source brings. */
  apply(update: SecretUpdate): Verdict {
    const { owner, records, scope } = this.#options;
    const { source } = update;
    const errors: ResourceError[] = [];
    const changed = new Set<SecretSlot>();
    for (const [name, message] of update.resources) {
      const slot = owner.secretSlots.known(name, source);
      // What nobody needs any more may still be on its way.
      if (slot === undefined) continue;
      const version = update.versions.get(name) ?? "";
      if (!update.isAgain && slot.current !== undefined && this.#served.get(slot) === version) continue;
      const reason = this.#put(slot, message, update, version);
      if (reason === undefined) changed.add(slot);
      else errors.push({ name, message: reason });
    }
    for (const name of update.removed) {
      // Its time is over: whoever needs it makes no new connections.
      owner.secretSlots.known(name, source)?.put(undefined);
      records.secrets.delete(keyOf({ name, source }));
    }
    const isResponse = source.kind !== "path" && !update.isAgain;
    if (isResponse && errors.length === 0) records.secrets.versionInfo = update.versionInfo;
    const log = scope.logging.logger("config");
    log.debug("secrets received", { resources: update.resources.size, refused: errors.length });
    if (changed.size > 0) for (const listener of this.#changeListeners) listener(changed);
    return errors;
  }

  /** The reason why the secret is refused; undefined = it serves. */
  #put(
    slot: SecretSlot,
    message: SecretMessage,
    { versionInfo, unwatched }: SecretUpdate,
    version: string,
  ): string | undefined {
    const { scope } = this.#options;
    const { name } = slot;
    const record = this.#recordOf(slot);
    const result = compileSecret(message, scope.environment);
    this.#served.delete(slot);
    const stats = this.#statsOf(slot);
    // One that could not be followed is refused, as by Envoy.
    const directories = unwatched.get(name) ?? [];
    if (!result.ok || directories.length > 0) {
      const reason = result.ok ? `cannot watch the directory ${directories.join(", ")}` : problemsText(result.problems);
      record.refused = { message, versionInfo, refusedAtMs: Date.now(), reason };
      stats.onRejected();
      return reason;
    }
    const log = scope.logging.logger("config");
    for (const warning of result.warnings) log.warning(warning.message, { secret: name, place: warning.place });
    record.active = { message, versionInfo, receivedAtMs: Date.now(), contentVersion: version };
    record.refused = undefined;
    this.#served.set(slot, version);
    slot.put(result.value);
    stats.onSuccess(versionInfo);
    return undefined;
  }

  #recordOf(slot: SecretSlot): ResourceRecord<SecretMessage> {
    return this.#options.records.secrets.of(slot.name, false, keyOf(slot));
  }

  #statsOf({ name }: Pick<SecretSlot, "name">): SubscriptionStats {
    return new SubscriptionStats(this.#options.scope.metrics, secretPlace(name));
  }

  /** Slots that nothing names any more go, with the keys in them. */
  #forget(needed: ReadonlySet<SecretSlot>): void {
    const { owner, records, scope } = this.#options;
    for (const slot of owner.secretSlots.values()) {
      if (needed.has(slot) || slot.source.kind === "static") continue;
      owner.secretSlots.delete(slot);
      records.secrets.delete(keyOf(slot));
      // As in Envoy, statistics are by name, which a secret of another source may share.
      if ([...needed].some(({ name }) => name === slot.name)) continue;
      scope.metrics.removeSeries(({ labels }) => labels["envoy_xds_resource_name"] === slot.name);
    }
  }
}

/** Secrets of several sources may share a name. */
function keyOf({ name, source }: Pick<SecretSlot, "name" | "source">): string {
  return `${secretSourceKey(source)} ${name}`;
}
