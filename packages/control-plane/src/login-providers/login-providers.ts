// The metadata of OpenID providers that BrowserLogins name: fetched when something is missing in the resource, asked
// for again while they serve, and kept when the provider does not answer. Whoever builds a snapshot reads what is there
// and never waits.
import type { Clock } from "@tulle/timing";
import { type Finding, findingCodes, formatPath, type Place } from "@tulle/config";
import type { Logger } from "@tulle/telemetry";
import {
  type DiscoveredEndpoints,
  discoveryKey,
  type MeshBrowserLogin,
  type ProviderLocation,
} from "../snapshot/browser-logins.ts";
import type { SavedEndpoints } from "./saved-provider.ts";
import { type ProviderEndpoints, readProviderMetadata } from "./provider-metadata.ts";

/** From one good answer to the next: endpoints hardly ever move. */
const refreshMs = 3_600_000;
const firstRetryMs = 250;
const maxRetryMs = 60_000;
/** Of all providers at once; further ones are not asked. */
export const maxProviders = 256;

/** A provider that is starting together with the mesh is no news. */
const toldAfterFailures = 5;
const issuerPath = ["spec", "provider", "issuer"] as const;

export type FetchedDocument = { readonly text: string } | { readonly problem: string };

export interface LoginProvidersOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Never rejects. */
  readonly fetch: (location: ProviderLocation) => Promise<FetchedDocument>;
  /** What an earlier run knew; it serves until the provider says otherwise. */
  readonly saved?: SavedEndpoints;
  /** All that is known, after each change. */
  readonly save?: (endpoints: SavedEndpoints) => void;
  /** Where a field of a BrowserLogin stands. */
  readonly placeOf?: (namespace: string, name: string, path: readonly string[]) => { readonly place?: Place };
}

/** Always either being asked or waiting to be. */
interface Provider {
  readonly location: ProviderLocation;
  failures: number;
  problem: string | undefined;
  isFetching: boolean;
  cancel: () => void;
}

export class LoginProviders {
  readonly #options: LoginProvidersOptions;
  readonly #providers = new Map<string, Provider>();
  readonly #endpoints = new Map<string, ProviderEndpoints>();
  #onChange = (): void => undefined;

  constructor(options: LoginProvidersOptions) {
    this.#options = options;
    for (const [key, endpoints] of options.saved ?? []) this.#endpoints.set(key, endpoints);
  }

  /** What is known now, by `discoveryKey`. */
  get endpoints(): DiscoveredEndpoints {
    return this.#endpoints;
  }

  /** Whoever reads the endpoints hears when some have come or changed. */
  follow(onChange: () => void): void {
    this.#onChange = onChange;
  }

  /** Begins to ask those that are new, and forgets those that nobody names any more. */
  want(locations: readonly ProviderLocation[]): void {
    const wanted = new Map(locations.slice(0, maxProviders).map((location) => [discoveryKey(location), location]));
    for (const [key, provider] of this.#providers) {
      if (wanted.has(key)) continue;
      provider.cancel();
      this.#providers.delete(key);
    }
    for (const key of this.#endpoints.keys()) if (!wanted.has(key)) this.#endpoints.delete(key);
    for (const [key, location] of wanted) if (!this.#providers.has(key)) this.#begin(key, location);
  }

  /** What the authors of `logins` should know: which provider does not say where to sign in, and what that means. */
  findings(logins: readonly MeshBrowserLogin[]): readonly Finding[] {
    return logins.flatMap(({ namespace, name, discovery }): readonly Finding[] => {
      const key = discovery === undefined ? "" : discoveryKey(discovery);
      const { problem, failures = 0 } = this.#providers.get(key) ?? {};
      if (problem === undefined || failures < toldAfterFailures) return [];
      const meaning = this.#endpoints.has(key) ? "the last ones go on" : "its pages answer 503 until they are there";
      return [
        {
          code: "TUL0010",
          severity: findingCodes.TUL0010.severity,
          message: `the endpoints of ${discovery!.issuer} could not be fetched (${problem}); ${meaning}`,
          resource: { kind: "BrowserLogin", namespace, name },
          path: formatPath(issuerPath),
          ...this.#options.placeOf?.(namespace, name, issuerPath),
        },
      ];
    });
  }

  /** Endpoints of the mesh have changed: who could not be asked may answer now. */
  askAgain(): void {
    for (const [key, provider] of this.#providers) {
      if (provider.problem === undefined || provider.isFetching || provider.location.service === undefined) continue;
      provider.cancel();
      provider.cancel = this.#options.clock.after(0, () => this.#ask(key, provider));
    }
  }

  close(): void {
    for (const provider of this.#providers.values()) provider.cancel();
    this.#providers.clear();
  }

  #begin(key: string, location: ProviderLocation): void {
    const provider: Provider = {
      location,
      failures: 0,
      problem: undefined,
      isFetching: false,
      cancel: () => undefined,
    };
    this.#providers.set(key, provider);
    // Later than the snapshot that asked for it, which may still be under construction.
    provider.cancel = this.#options.clock.after(0, () => this.#ask(key, provider));
  }

  #ask(key: string, provider: Provider): void {
    provider.isFetching = true;
    void this.#options.fetch(provider.location).then((fetched) => {
      provider.isFetching = false;
      // Forgotten meanwhile.
      if (this.#providers.get(key) !== provider) return;
      this.#answered(key, provider, fetched);
    });
  }

  #answered(key: string, provider: Provider, fetched: FetchedDocument): void {
    const { clock, log, save } = this.#options;
    const { issuer } = provider.location;
    const read = "text" in fetched ? readProviderMetadata(fetched.text, issuer) : fetched;
    if ("problem" in read) {
      provider.failures += 1;
      if (provider.problem !== read.problem) {
        log.warning("a provider's metadata could not be had", { issuer, reason: read.problem });
      }
      provider.problem = read.problem;
      const delayMs = Math.min(maxRetryMs, firstRetryMs * 2 ** Math.min(provider.failures - 1, 30));
      provider.cancel = clock.after(delayMs, () => this.#ask(key, provider));
      return;
    }
    provider.failures = 0;
    provider.problem = undefined;
    provider.cancel = clock.after(refreshMs, () => this.#ask(key, provider));
    const before = JSON.stringify(this.#endpoints.get(key));
    this.#endpoints.set(key, read.endpoints);
    if (JSON.stringify(read.endpoints) === before) return;
    save?.(new Map(this.#endpoints));
    this.#onChange();
  }
}
