/**
 * The texts of an AuthorizationPolicy: values with a `*` at one end, paths and their templates, ports, ranges,
 * accounts.
 */
import type { Format } from "../schema/formats.ts";
import { dnsLabel, nonEmpty, quote } from "../schema/formats.ts";
import { isIpBlock } from "../schema/ip-block.ts";

/** `{*}` stands for one segment of a path, `{**}` for all that is left of it (Istio: security.ContainsPathTemplate). */
export function isPathTemplate(path: string): boolean {
  return path.includes("{*}") || path.includes("{**}");
}

/** A path or a template of one. */
export const pathPattern: Format = {
  name: "path",
  description: 'a path, with "*" at its beginning or end, or with "{*}" for one segment and "{**}" for the rest',
  check: (value) => {
    if (value === "") return "may not be empty";
    if (!isPathTemplate(value)) return undefined;
    if (!value.startsWith("/")) return `${quote(value)} is a template, which begins with "/"`;
    const segments = value.slice(1).split("/");
    for (const [index, segment] of segments.entries()) {
      if (segment === "{*}") continue;
      if (segment === "{**}") {
        if (index === segments.length - 1) continue;
        return `${quote(value)}: {**} is possible at the end only`;
      }
      // Istio refuses what Envoy's template would read in another way (security.CheckValidPathTemplate).
      if (/[*{}]/.test(segment))
        return `${quote(value)}: {*} and {**} have to be whole segments, without "*" beside them`;
    }
    return undefined;
  },
  jsonSchema: { minLength: 1 },
};

export const portNumber: Format = {
  name: "port",
  description: "a port number from 0 to 65535, as text",
  check: (value) => (isPortNumber(value) ? undefined : `${quote(value)} is not a port number`),
  jsonSchema: { pattern: "^[0-9]+$" },
};

export function isPortNumber(value: string): boolean {
  return /^\d{1,5}$/.test(value) && Number(value) <= 65_535;
}

export const ipBlock: Format = {
  name: "address range",
  description: 'an IP address, or a range as "10.0.0.0/8"',
  check: (value) => (isIpBlock(value) ? undefined : `${quote(value)} is neither an IP address nor a range of them`),
  jsonSchema: { minLength: 1 },
};

export const serviceAccountReference: Format = {
  name: "service account",
  description: 'the name of a service account, or "<namespace>/<name>"',
  check: (value) => {
    const parts = value.split("/");
    if (parts.length > 2) return `${quote(value)} has more than one "/"`;
    if (value.includes("*")) return `${quote(value)}: service accounts take no wildcard; "principals" do`;
    const wrong = parts.find((part) => !/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(part) || part.length > 253);
    return wrong === undefined ? undefined : `${quote(value)} is not a service account (<namespace>/<name>)`;
  },
  jsonSchema: { minLength: 1, maxLength: 320 },
};

/** A namespace of callers; `*` may stand for any part of it. */
export const namespacePattern: Format = {
  name: "namespace",
  description: 'the name of a namespace; "*" stands for any text in it',
  check: (value) => {
    if (value === "") return nonEmpty.check(value);
    // Becomes a part of a regular expression, and has to stay what it is there.
    return dnsLabel.check(value.replaceAll("*", "a")) === undefined ? undefined : `${quote(value)} is not a namespace`;
  },
  jsonSchema: { minLength: 1 },
};

/** A trust domain of callers; `*` may stand for any part of it. */
export const trustDomainPattern: Format = {
  name: "trust domain",
  description: 'the name of a trust domain; "*" stands for any text in it',
  check: (value) => {
    if (value === "") return nonEmpty.check(value);
    // The characters of a SPIFFE ID's trust domain (SPIFFE-ID 2.1).
    return /^[-a-z0-9._*]+$/.test(value) ? undefined : `${quote(value)} is not a trust domain`;
  },
  jsonSchema: { minLength: 1 },
};
