/** The keys of an AuthorizationPolicy's `when`: what each is about, and which values it takes. */
import type { Format } from "../schema/formats.ts";
import { headerName, nonEmpty, quote } from "../schema/formats.ts";
import {
  ipBlock,
  namespacePattern,
  portNumber,
  serviceAccountReference,
  trustDomainPattern,
} from "./authorization-formats.ts";

const plainKeys: Readonly<Record<string, Format>> = {
  "source.ip": ipBlock,
  "source.namespace": namespacePattern,
  "source.serviceAccount": serviceAccountReference,
  "source.principal": nonEmpty,
  "source.trustDomain": trustDomainPattern,
  "remote.ip": ipBlock,
  "request.auth.principal": nonEmpty,
  "request.auth.audiences": nonEmpty,
  "request.auth.presenter": nonEmpty,
  "destination.ip": ipBlock,
  "destination.port": portNumber,
  "connection.sni": nonEmpty,
};

const bracketKeys = ["request.headers[…]", "request.auth.claims[…]", "experimental.envoy.filters.…[…]"];

/** The header of `request.headers[x-name]`. */
export function headerOfKey(key: string): string | undefined {
  return /^request\.headers\[([^[\]]+)\]$/.exec(key)?.[1];
}

/** The claim of `request.auth.claims[a][b]`, outermost first. */
export function claimPath(key: string): readonly string[] | undefined {
  const brackets = /^request\.auth\.claims((?:\[[^[\]]+\])+)$/.exec(key)?.[1];
  return brackets?.slice(1, -1).split("][");
}

/** The format of the values of `key`; undefined when there is no such key. */
export function formatOfKey(key: string): Format | undefined {
  if (Object.hasOwn(plainKeys, key)) return plainKeys[key];
  const header = headerOfKey(key);
  if (header !== undefined) return headerName.check(header) === undefined ? nonEmpty : undefined;
  return claimPath(key) !== undefined || isFilterKey(key) ? nonEmpty : undefined;
}

/** Istio: metadata that other filters left; nothing here writes any. */
export function isFilterKey(key: string): boolean {
  return /^experimental\.envoy\.filters\.[^[\]]+\[[^[\]]+\]$/.test(key);
}

/** The format of `key` itself. */
export const conditionKey: Format = {
  name: "condition key",
  description: [...Object.keys(plainKeys), ...bracketKeys].join(", "),
  check: (value) =>
    formatOfKey(value) === undefined
      ? `${quote(value)} is not a key of a condition; known are ${conditionKey.description}`
      : undefined,
  jsonSchema: { minLength: 1 },
};
