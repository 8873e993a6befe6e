// Secrets as they come by SDS, over the aggregated stream, over streams of their own to static clusters, and from
// files. What is compiled says which slots it needs; a secret that is accepted is put into its slot, a bad one is
// refused by name and the one before it stays.
import { toBinary } from "@bufbuild/protobuf";
import { RepeatedWarning } from "@tulle/telemetry";
import {
  type AdsClient,
  type AdsResponse,
  type Clock,
  type connectAds,
  contentVersion,
  type ResourceError,
  type Verdict,
} from "@tulle/xds";
import type { Node } from "@tulle/xds/envoy/config/core/v3/base_pb";
import {
  type Secret as SecretMessage,
  SecretSchema,
} from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import { compileSecret } from "../compile/compile-secret.ts";
import { problemsText } from "../fields/problems.ts";
import type { ResourceRecord } from "../runtime/config-records.ts";
import { type SecretSlot, type SecretSource, secretSourceKey } from "../tls/secret-slot.ts";
import type { ConfigTargets } from "../apply/load-static-resources.ts";
import type { OpenStream } from "./open-stream.ts";
import { directoriesOf, readSecretFile } from "./secret-files.ts";
import { secretPlace, SubscriptionStats } from "../apply/subscription-stats.ts";
import { directoryOf, WatchedFiles } from "./watched-files.ts";

type FileSource = Extract<SecretSource, { kind: "path" }>;
type SecretResponse = Extract<AdsResponse, { type: "SDS" }>;

/** What uses secrets; each says all that it needs whenever that has changed. */
export type SecretUser = "static resources" | "clusters" | "listeners";

export interface SecretSubscriptionOptions extends ConfigTargets {
  readonly clock: Clock;
  readonly connect: typeof connectAds;
  readonly node: Node;
  readonly openStream: OpenStream;
}

interface LastSecret {
  readonly message: SecretMessage;
  readonly versionInfo: string;
  /** Hash of its content. */
  readonly version: string;
  readonly isServed: boolean;
}

export class SecretSubscription {
  readonly #options: SecretSubscriptionOptions;
  readonly #needs = new Map<SecretUser, ReadonlySet<SecretSlot>>();
  /** Names asked for, by source. */
  readonly #names = new Map<string, ReadonlySet<string>>();
  readonly #clients = new Map<string, AdsClient>();
  /** Names of secrets in files, by source. */
  readonly #files = new Map<string, FileSource>();
  /** What was put there last. */
  readonly #last = new WeakMap<SecretSlot, LastSecret>();
  readonly #watched: WatchedFiles;
  readonly #changeListeners: (() => void)[] = [];
  /** Set by whoever has an aggregated stream. */
  subscribeAggregated: (names: ReadonlySet<string>) => void = () => {};

  constructor(options: SecretSubscriptionOptions) {
    this.#options = options;
    const { clock, scope } = options;
    const log = scope.logging.logger("config");
    this.#watched = new WatchedFiles({ clock, log, onChange: (user) => this.#filesChanged(user) });
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
      this.#recordOf(slot);
      slot.onTimeout = () => this.#statsOf(slot).onTimeout();
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
    const errors: ResourceError[] = [];
    let hasChanged = false;
    for (const [name, message] of response.resources) {
      const slot = owner.secretSlots.known(name, source);
      // What nobody needs any more may still be on its way.
      if (slot === undefined) continue;
      const version = response.versions.get(name) ?? "";
      if (this.#serves(slot, version)) continue;
      const reason = this.#put(slot, message, response.versionInfo, version);
      if (reason === undefined) hasChanged = true;
      else errors.push({ name, message: reason });
    }
    for (const name of response.removed) {
      // Its time is over: whoever needs it makes no new connections.
      owner.secretSlots.known(name, source)?.put(undefined);
      records.secrets.delete(keyOf({ name, source }));
    }
    if (errors.length === 0) records.secrets.versionInfo = response.versionInfo;
    const log = scope.logging.logger("config");
    log.debug("secrets received", { resources: response.resources.size, refused: errors.length });
    if (hasChanged) this.#tellChange();
    return errors;
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
    this.#clients.clear();
    this.#watched.close();
  }

  #tellChange(): void {
    for (const listener of this.#changeListeners) listener();
  }

  /** The reason why the secret is refused; undefined = it serves. */
  #put(slot: SecretSlot, message: SecretMessage, versionInfo: string, version: string): string | undefined {
    const { scope } = this.#options;
    const log = scope.logging.logger("config");
    const { name } = slot;
    const record = this.#recordOf(slot);
    const result = compileSecret(message, scope.environment);
    this.#last.set(slot, { message, versionInfo, version, isServed: false });
    // A bad file may be a good one soon. One that could not be followed is refused, as by Envoy.
    const unwatched = this.#watched.set(`secret ${keyOf(slot)}`, directoriesOf(message));
    const stats = this.#statsOf(slot);
    if (!result.ok || unwatched.length > 0) {
      const reason = result.ok ? `cannot watch the directory ${unwatched.join(", ")}` : problemsText(result.problems);
      record.refused = { message, versionInfo, refusedAtMs: Date.now(), reason };
      stats.onRejected();
      return reason;
    }
    for (const warning of result.warnings) log.warning(warning.message, { secret: name, place: warning.place });
    record.active = { message, versionInfo, receivedAtMs: Date.now(), contentVersion: version };
    record.refused = undefined;
    this.#last.set(slot, { message, versionInfo, version, isServed: true });
    slot.put(result.value);
    stats.onSuccess(versionInfo);
    return undefined;
  }

  #serves(slot: SecretSlot, version: string): boolean {
    const last = this.#last.get(slot);
    return slot.current !== undefined && last?.isServed === true && last.version === version;
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
      this.#watched.set(`secret ${keyOf(slot)}`, new Set());
      // As in Envoy, statistics are by name, which a secret of another source may share.
      if ([...needed].some(({ name }) => name === slot.name)) continue;
      scope.metrics.removeSeries(({ labels }) => labels["envoy_xds_resource_name"] === slot.name);
    }
  }

  #subscribe(source: SecretSource, key: string, names: ReadonlySet<string>): void {
    const known = this.#names.get(key);
    if (known !== undefined && known.size === names.size && names.isSubsetOf(known)) return;
    this.#names.set(key, names);
    for (const name of known === undefined ? names : names.difference(known)) this.#statsOf({ name }).onAttempt();
    switch (source.kind) {
      case "ads":
        this.subscribeAggregated(names);
        break;
      case "grpc":
        this.#clientOf(source, key).subscribe("SDS", names);
        break;
      case "path":
        this.#files.set(key, source);
        this.#watched.set(`file ${key}`, new Set([directoryOf(source.path, source.watchedDirectory)]));
        this.#readFile(source, names);
        break;
      case "static":
        break;
    }
  }

  #unsubscribe(key: string): void {
    this.#names.delete(key);
    if (key === "ads") this.subscribeAggregated(new Set());
    this.#clients.get(key)?.close();
    this.#clients.delete(key);
    if (this.#files.delete(key)) this.#watched.set(`file ${key}`, new Set());
  }

  #filesChanged(user: string): void {
    const [kind, ...rest] = user.split(" ");
    if (kind === "file") {
      const key = rest.join(" ");
      const source = this.#files.get(key);
      if (source !== undefined) this.#readFile(source, this.#names.get(key) ?? new Set());
      return;
    }
    for (const slot of this.#options.owner.secretSlots.values()) {
      if (user === `secret ${keyOf(slot)}`) this.#readAgain(slot);
    }
  }

  /** The secret is the same, the files that it names are not. */
  #readAgain(slot: SecretSlot): void {
    const log = this.#options.scope.logging.logger("config");
    const last = this.#last.get(slot);
    if (last === undefined) return;
    const reason = this.#put(slot, last.message, last.versionInfo, last.version);
    if (reason === undefined) this.#tellChange();
    else
      log.warning("a secret's files have changed and cannot be used: the last ones stay", {
        secret: slot.name,
        reason,
      });
  }

  #readFile(source: FileSource, names: ReadonlySet<string>): void {
    const { owner, scope } = this.#options;
    const log = scope.logging.logger("config");
    const file = readSecretFile(source.path);
    if (!file.ok) {
      log.warning("a file of secrets cannot be used", { path: source.path, reason: file.reason });
      return;
    }
    for (const name of names) {
      const slot = owner.secretSlots.known(name, source);
      const message = file.secrets.get(name);
      if (slot === undefined) continue;
      if (message === undefined) {
        log.warning("a file of secrets lacks one that is needed", { path: source.path, secret: name });
        continue;
      }
      const version = contentVersion(toBinary(SecretSchema, message));
      if (this.#serves(slot, version)) continue;
      const reason = this.#put(slot, message, file.versionInfo, version);
      if (reason !== undefined) log.warning("a secret is refused", { path: source.path, secret: name, reason });
    }
    this.#tellChange();
  }

  #clientOf(source: Extract<SecretSource, { kind: "grpc" }>, key: string): AdsClient {
    const known = this.#clients.get(key);
    if (known !== undefined) return known;
    const { clock, connect, node, scope, openStream } = this.#options;
    const { target } = source;
    const streamWarning = new RepeatedWarning(scope.logging.logger("config"), () => clock.nowMs());
    const client = connect({
      target: openStream(target, "sds"),
      node,
      clock,
      handlers: {
        onResponse: (response) =>
          response.type === "SDS"
            ? this.onSecrets(response, source)
            : [...response.resources.keys()].map((name) => ({ name, message: "only secrets are asked for here" })),
        onState: (state) => {
          if (state.kind === "waiting")
            streamWarning.tell("the SDS stream ended", { cluster: target.clusterName, reason: state.reason });
        },
      },
    });
    this.#clients.set(key, client);
    return client;
  }
}

/** Secrets of several sources may share a name. */
function keyOf({ name, source }: Pick<SecretSlot, "name" | "source">): string {
  return `${secretSourceKey(source)} ${name}`;
}
