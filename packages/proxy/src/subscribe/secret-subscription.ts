// Where secrets come from by SDS: the aggregated stream, streams of their own to static clusters, and files. They are
// put into their slots by AppliedSecrets, which says what is needed.
import type { Clock } from "@tulle/timing";
import { toBinary } from "@bufbuild/protobuf";
import { RepeatedWarning } from "@tulle/telemetry";
import { type AdsClient, type AdsResponse, type connectAds, contentVersion, type Verdict } from "@tulle/xds";
import type { Node } from "@tulle/xds/envoy/config/core/v3/base_pb";
import {
  type Secret as SecretMessage,
  SecretSchema,
} from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import { AppliedSecrets } from "../apply/applied-secrets.ts";
import type { SecretNeed, SecretUpdate } from "../apply/config-update.ts";
import type { ConfigTargets } from "../apply/load-static-resources.ts";
import { secretPlace, SubscriptionStats } from "../apply/subscription-stats.ts";
import { type SecretSource, secretSourceKey } from "../tls/secret-slot.ts";
import type { OpenStream } from "./open-stream.ts";
import { directoriesOf, readSecretFile } from "./secret-files.ts";
import { directoryOf, WatchedFiles } from "./watched-files.ts";

type FileSource = Extract<SecretSource, { kind: "path" }>;
type SecretResponse = Extract<AdsResponse, { type: "SDS" }>;

export interface SecretSubscriptionOptions extends ConfigTargets {
  readonly clock: Clock;
  readonly connect: typeof connectAds;
  readonly node: Node;
  readonly openStream: OpenStream;
}

interface LastSecret {
  readonly name: string;
  readonly source: SecretSource;
  readonly message: SecretMessage;
  readonly versionInfo: string;
  /** Hash of its content. */
  readonly version: string;
}

export class SecretSubscription {
  readonly applied: AppliedSecrets;
  readonly #options: SecretSubscriptionOptions;
  /** Names asked for, by source. */
  readonly #names = new Map<string, ReadonlySet<string>>();
  readonly #clients = new Map<string, AdsClient>();
  /** Names of secrets in files, by source. */
  readonly #files = new Map<string, FileSource>();
  /** What came last, by source and name: its files may change. */
  readonly #last = new Map<string, LastSecret>();
  readonly #watched: WatchedFiles;
  /** Set by whoever has an aggregated stream. */
  subscribeAggregated: (names: ReadonlySet<string>) => void = () => {};

  constructor(options: SecretSubscriptionOptions) {
    this.#options = options;
    const { clock, scope, owner, records } = options;
    const log = scope.logging.logger("config");
    this.#watched = new WatchedFiles({ clock, log, onChange: (user) => this.#filesChanged(user) });
    this.applied = new AppliedSecrets({ scope, owner, records, onNeeds: (needs) => this.#onNeeds(needs) });
  }

  /** Takes one response of that source. */
  onSecrets(response: SecretResponse, source: SecretSource): Verdict {
    const { versionInfo, resources, versions, removed } = response;
    return this.#take({ source, versionInfo, resources, versions, removed });
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
    this.#clients.clear();
    this.#watched.close();
  }

  #take(update: Omit<SecretUpdate, "unwatched" | "isAgain">, isAgain = false): Verdict {
    const { source, versionInfo, versions } = update;
    const key = secretSourceKey(source);
    // What nobody needs any more may still be on its way.
    const needed = [...update.resources].filter(([name]) => this.#names.get(key)?.has(name) === true);
    const unwatched = new Map<string, readonly string[]>();
    for (const [name, message] of needed) {
      // A bad file may be a good one soon.
      unwatched.set(name, this.#watched.set(`secret ${key} ${name}`, directoriesOf(message)));
      this.#last.set(`${key} ${name}`, { name, source, message, versionInfo, version: versions.get(name) ?? "" });
    }
    return this.applied.apply({ ...update, resources: new Map(needed), unwatched, isAgain });
  }

  #onNeeds(needs: readonly SecretNeed[]): void {
    const bySource = new Map(needs.map((need) => [secretSourceKey(need.source), need]));
    for (const [key, { source, name }] of this.#last) {
      if (bySource.get(secretSourceKey(source))?.names.has(name) === true) continue;
      this.#last.delete(key);
      this.#watched.set(`secret ${key}`, new Set());
    }
    for (const [key, { source, names }] of bySource) this.#subscribe(source, key, names);
    for (const key of this.#names.keys()) if (!bySource.has(key)) this.#unsubscribe(key);
  }

  #subscribe(source: SecretSource, key: string, names: ReadonlySet<string>): void {
    const known = this.#names.get(key);
    if (known !== undefined && known.size === names.size && names.isSubsetOf(known)) return;
    this.#names.set(key, names);
    const { metrics } = this.#options.scope;
    for (const name of known === undefined ? names : names.difference(known)) {
      new SubscriptionStats(metrics, secretPlace(name)).onAttempt();
    }
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
    const key = rest.join(" ");
    if (kind === "file") {
      const source = this.#files.get(key);
      if (source !== undefined) this.#readFile(source, this.#names.get(key) ?? new Set());
      return;
    }
    const last = this.#last.get(key);
    if (last !== undefined) this.#readAgain(last);
  }

  /** The secret is the same, the files that it names are not. */
  #readAgain({ name, source, message, versionInfo, version }: LastSecret): void {
    const resources = new Map([[name, message]]);
    const versions = new Map([[name, version]]);
    const [refused] = this.#take({ source, versionInfo, resources, versions, removed: [] }, true);
    if (refused === undefined) return;
    const log = this.#options.scope.logging.logger("config");
    log.warning("a secret's files have changed and cannot be used: the last ones stay", {
      secret: name,
      reason: refused.message,
    });
  }

  #readFile(source: FileSource, names: ReadonlySet<string>): void {
    const log = this.#options.scope.logging.logger("config");
    const file = readSecretFile(source.path);
    if (!file.ok) {
      log.warning("a file of secrets cannot be used", { path: source.path, reason: file.reason });
      return;
    }
    const resources = new Map<string, SecretMessage>();
    const versions = new Map<string, string>();
    for (const name of names) {
      const message = file.secrets.get(name);
      if (message === undefined) {
        log.warning("a file of secrets lacks one that is needed", { path: source.path, secret: name });
        continue;
      }
      resources.set(name, message);
      versions.set(name, contentVersion(toBinary(SecretSchema, message)));
    }
    const { versionInfo } = file;
    for (const { name, message: reason } of this.#take({ source, versionInfo, resources, versions, removed: [] })) {
      log.warning("a secret is refused", { path: source.path, secret: name, reason });
    }
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
