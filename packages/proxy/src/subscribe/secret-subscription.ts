// Secrets as they come by SDS, over the aggregated stream and over streams of their own to static clusters. What is compiled says which
// slots it needs; a secret that is accepted is put into its slot, a bad one is refused by name and the one before it stays.
import type { AdsClient, AdsResponse, Clock, connectAds, ResourceError, Verdict } from "@tulle/xds";
import type { Node } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { compileSecret } from "../compile/compile-secret.ts";
import { problemsText } from "../compile/problems.ts";
import { type SecretSlot, type SecretSource, secretSourceKey } from "../tls/secret-slot.ts";
import type { ConfigTargets } from "./load-static-resources.ts";

type SecretResponse = Extract<AdsResponse, { type: "SDS" }>;

/** What uses secrets; each says all that it needs whenever that has changed. */
export type SecretUser = "static resources" | "clusters" | "listeners";

export interface SecretSubscriptionOptions extends ConfigTargets {
  readonly clock: Clock;
  readonly connect: typeof connectAds;
  readonly node: Node;
  /** Where a static cluster of the bootstrap leads; undefined = there is none. */
  readonly targetOf: (clusterName: string) => string | undefined;
}

export class SecretSubscription {
  readonly #options: SecretSubscriptionOptions;
  readonly #needs = new Map<SecretUser, ReadonlySet<SecretSlot>>();
  /** Names asked for, by source. */
  readonly #names = new Map<string, ReadonlySet<string>>();
  readonly #clients = new Map<string, AdsClient>();
  readonly #changeListeners: (() => void)[] = [];
  /** Set by whoever has an aggregated stream. */
  subscribeAggregated: (names: ReadonlySet<string>) => void = () => {};

  constructor(options: SecretSubscriptionOptions) {
    this.#options = options;
  }

  /** Called after each response that brought something. */
  onChange(listener: () => void): void {
    this.#changeListeners.push(listener);
  }

  need(user: SecretUser, slots: ReadonlySet<SecretSlot>): void {
    this.#needs.set(user, slots);
    const all = new Set([...this.#needs.values()].flatMap((needed) => [...needed]));
    this.#forget(all);
    const bySource = new Map<string, SecretSlot[]>();
    for (const slot of all) {
      if (slot.source.kind === "static") continue;
      // Shown as warming until it has come.
      this.#options.records.secrets.of(slot.name);
      const key = secretSourceKey(slot.source);
      const known = bySource.get(key);
      if (known === undefined) bySource.set(key, [slot]);
      else known.push(slot);
    }
    for (const [key, wanted] of bySource)
      this.#subscribe(wanted[0]!.source, key, new Set(wanted.map(({ name }) => name)));
    for (const key of this.#names.keys()) if (!bySource.has(key)) this.#unsubscribe(key);
  }

  /** Takes one response of that source. */
  onSecrets(response: SecretResponse, source: SecretSource): Verdict {
    const { owner, records, scope } = this.#options;
    const log = scope.logging.logger("config");
    const errors: ResourceError[] = [];
    const { versionInfo } = response;
    let hasChanged = false;
    for (const [name, message] of response.resources) {
      const slot = owner.secretSlots.known(name, source);
      // What nobody needs any more may still be on its way.
      if (slot === undefined) continue;
      const record = records.secrets.of(name);
      const contentVersion = response.versions.get(name) ?? "";
      // Another source may have brought the same under this name.
      if (records.secrets.holds(name, contentVersion) && slot.current !== undefined) continue;
      const result = compileSecret(message, scope.environment);
      if (!result.ok) {
        const reason = problemsText(result.problems);
        record.refused = { message, versionInfo, refusedAtMs: Date.now(), reason };
        errors.push({ name, message: reason });
        continue;
      }
      for (const warning of result.warnings) log.warning(warning.message, { secret: name, place: warning.place });
      record.active = { message, versionInfo, receivedAtMs: Date.now(), contentVersion };
      record.refused = undefined;
      slot.put(result.value);
      hasChanged = true;
    }
    if (errors.length === 0) records.secrets.versionInfo = versionInfo;
    log.debug("secrets received", { resources: response.resources.size, refused: errors.length });
    if (hasChanged) for (const listener of this.#changeListeners) listener();
    return errors;
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
    this.#clients.clear();
  }

  /** Slots that nothing names any more go, with the keys in them. */
  #forget(needed: ReadonlySet<SecretSlot>): void {
    const { owner, records } = this.#options;
    for (const slot of owner.secretSlots.values()) {
      if (needed.has(slot) || slot.source.kind === "static") continue;
      owner.secretSlots.delete(slot);
      records.secrets.delete(slot.name);
    }
  }

  #subscribe(source: SecretSource, key: string, names: ReadonlySet<string>): void {
    const known = this.#names.get(key);
    if (known !== undefined && known.size === names.size && names.isSubsetOf(known)) return;
    this.#names.set(key, names);
    if (source.kind === "ads") this.subscribeAggregated(names);
    else if (source.kind === "grpc") this.#clientOf(source.clusterName, key)?.subscribe("SDS", names);
  }

  #unsubscribe(key: string): void {
    this.#names.delete(key);
    if (key === "ads") this.subscribeAggregated(new Set());
    this.#clients.get(key)?.close();
    this.#clients.delete(key);
  }

  #clientOf(clusterName: string, key: string): AdsClient | undefined {
    const known = this.#clients.get(key);
    if (known !== undefined) return known;
    const { clock, connect, node, scope, targetOf } = this.#options;
    const log = scope.logging.logger("config");
    const target = targetOf(clusterName);
    if (target === undefined) {
      log.error("there is no static cluster to fetch secrets from", { cluster: clusterName });
      return undefined;
    }
    const source: SecretSource = { kind: "grpc", clusterName };
    const client = connect({
      target,
      node,
      service: "sds",
      clock,
      handlers: {
        onResponse: (response) =>
          response.type === "SDS"
            ? this.onSecrets(response, source)
            : [...response.resources.keys()].map((name) => ({ name, message: "only secrets are asked for here" })),
        onState: (state) => {
          if (state.kind === "waiting")
            log.warning("the SDS stream ended", { cluster: clusterName, reason: state.reason });
        },
      },
    });
    this.#clients.set(key, client);
    return client;
  }
}
