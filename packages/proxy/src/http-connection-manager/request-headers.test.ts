// What the connection manager does to request headers: who the client is and what is believed of what it says.
import assert from "node:assert/strict";
import { test } from "node:test";
import { handBuiltConnectionManager, prefixRoutes } from "../testing/hand-built-runtime.ts";
import type { HttpConnectionManagerConfig } from "./http-connection-manager-config.ts";
import { HeaderMap } from "../http/header-map.ts";
import type { RequestHead } from "../http/message.ts";
import { mutateRequestHeaders, stripHostPort } from "./request-headers.ts";
import { StreamInfo } from "../http/stream-info.ts";

const off = { generateRequestId: false } as const;
const remoteIp = "203.0.113.9";

interface Case {
  readonly name: string;
  readonly headers: readonly string[];
  readonly config: Partial<HttpConnectionManagerConfig>;
  readonly expected: Readonly<Record<string, string | undefined>>;
  readonly client?: string;
}

const cases: readonly Case[] = [
  {
    name: "an edge adds the client",
    headers: [],
    config: off,
    expected: { "x-forwarded-for": remoteIp, "x-forwarded-proto": "http", "x-envoy-external-address": remoteIp },
  },
  {
    name: "an edge appends and does not believe the scheme",
    headers: ["x-forwarded-for", "9.9.9.9", "x-forwarded-proto", "https"],
    config: off,
    expected: {
      "x-forwarded-for": `9.9.9.9,${remoteIp}`,
      "x-forwarded-proto": "http",
      "x-envoy-external-address": remoteIp,
    },
  },
  {
    name: "one trusted hop",
    headers: ["x-forwarded-for", "9.9.9.9,8.8.8.8", "x-forwarded-proto", "https"],
    config: { ...off, xffNumTrustedHops: 1 },
    expected: { "x-forwarded-proto": "https", "x-envoy-external-address": "8.8.8.8" },
    client: "8.8.8.8:0",
  },
  {
    name: "skip_xff_append",
    headers: ["x-forwarded-for", "9.9.9.9"],
    config: { ...off, skipXffAppend: true },
    expected: { "x-forwarded-for": "9.9.9.9" },
  },
  {
    name: "not an edge: what is told is taken",
    headers: ["x-forwarded-for", "1.1.1.1, 9.9.9.9", "x-forwarded-proto", "https"],
    config: { ...off, useRemoteAddress: false },
    expected: {
      "x-forwarded-for": "1.1.1.1, 9.9.9.9",
      "x-forwarded-proto": "https",
      "x-envoy-external-address": undefined,
    },
    client: "9.9.9.9:0",
  },
  {
    name: "not an edge: garbage is no address",
    headers: ["x-forwarded-for", "unknown"],
    config: { ...off, useRemoteAddress: false },
    expected: { "x-forwarded-proto": "http" },
    client: `${remoteIp}:5`,
  },
  {
    name: "a stranger's Envoy headers go",
    headers: [
      "x-envoy-retry-on",
      "5xx",
      "x-envoy-internal",
      "true",
      "x-envoy-upstream-rq-timeout-ms",
      "1",
      "x-envoy-decorator-operation",
      "o",
      "x-envoy-attempt-count",
      "9",
      "x-envoy-peer-metadata",
      "m",
    ],
    config: off,
    expected: {
      "x-envoy-retry-on": undefined,
      "x-envoy-internal": undefined,
      "x-envoy-upstream-rq-timeout-ms": undefined,
      "x-envoy-decorator-operation": undefined,
      "x-envoy-attempt-count": "9",
      "x-envoy-peer-metadata": "m",
    },
  },
  {
    name: "what a stranger says of rewrites goes at an edge",
    headers: ["x-envoy-original-path", "/a", "x-envoy-original-host", "a", "x-envoy-is-timeout-retry", "true"],
    config: off,
    expected: {
      "x-envoy-original-path": undefined,
      "x-envoy-original-host": undefined,
      "x-envoy-is-timeout-retry": undefined,
    },
  },
  {
    name: "what a neighbour says of rewrites stays",
    headers: ["x-envoy-original-path", "/a", "x-envoy-original-host", "a", "x-envoy-retry-on", "5xx"],
    config: { ...off, useRemoteAddress: false },
    expected: { "x-envoy-original-path": "/a", "x-envoy-original-host": "a", "x-envoy-retry-on": undefined },
  },
  {
    name: "not an edge: nobody is internal without an address that was told",
    headers: ["x-envoy-retry-on", "5xx"],
    config: { ...off, useRemoteAddress: false, isInternalAddress: () => true },
    expected: { "x-envoy-retry-on": undefined, "x-envoy-internal": undefined },
  },
  {
    name: "not an edge: one address that was told may be internal",
    headers: ["x-envoy-retry-on", "5xx", "x-forwarded-for", "10.0.0.1"],
    config: { ...off, useRemoteAddress: false, isInternalAddress: (ip) => ip === "10.0.0.1" },
    expected: { "x-envoy-retry-on": "5xx", "x-envoy-internal": "true" },
  },
  {
    name: "an internal client's stay",
    headers: ["x-envoy-retry-on", "5xx"],
    config: { ...off, isInternalAddress: () => true },
    expected: { "x-envoy-retry-on": "5xx", "x-envoy-internal": "true", "x-envoy-external-address": undefined },
  },
  {
    name: "a client certificate that was not shown",
    headers: ["x-forwarded-client-cert", "By=x"],
    config: off,
    expected: { "x-forwarded-client-cert": undefined },
  },
  { name: "via", headers: ["via", "1.1 a"], config: { ...off, via: "1.1 b" }, expected: { via: "1.1 a, 1.1 b" } },
  {
    name: "a request id within the mesh stays",
    headers: ["x-request-id", "abc"],
    config: { useRemoteAddress: false },
    expected: { "x-request-id": "abc" },
  },
  {
    name: "an edge keeps one where it is told to",
    headers: ["x-request-id", "abc"],
    config: { preserveExternalRequestId: true },
    expected: { "x-request-id": "abc" },
  },
];

for (const { name, headers, config, expected, client } of cases) {
  test(name, () => {
    const { head, info } = mutate(headers, config);
    for (const [header, value] of Object.entries(expected)) assert.equal(head.headers.get(header), value, header);
    if (client !== undefined) assert.equal(info.downstreamRemoteAddress, client);
  });
}

test("an edge replaces a request id by a random UUID of version 4", () => {
  const ids = [0, 1].map(() => mutate(["x-request-id", "abc"], {}).head.headers.get("x-request-id")!);
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.notEqual(ids[0], ids[1]);
});

test("ports of the authority are stripped as configured", () => {
  const table: readonly [string, Partial<HttpConnectionManagerConfig>, string][] = [
    ["a:80", {}, "a:80"],
    ["a:80", { stripMatchingHostPort: true }, "a"],
    ["a:81", { stripMatchingHostPort: true }, "a:81"],
    ["a:81", { stripAnyHostPort: true }, "a"],
    ["[::1]", { stripAnyHostPort: true }, "[::1]"],
    ["[::1]:80", { stripAnyHostPort: true }, "[::1]"],
  ];
  for (const [authority, config, expected] of table) {
    const head = requestHead([], authority);
    stripHostPort(head, 80, configOf(config));
    assert.equal(head.authority, expected);
  }
});

function configOf(overrides: Partial<HttpConnectionManagerConfig>): HttpConnectionManagerConfig {
  return handBuiltConnectionManager(prefixRoutes({}), { log: () => undefined }, overrides);
}

function requestHead(headers: readonly string[], authority = "a"): RequestHead {
  return {
    method: "GET",
    scheme: "http",
    authority,
    path: "/",
    protocol: "HTTP/1.1",
    headers: new HeaderMap([...headers]),
  };
}

function mutate(
  headers: readonly string[],
  config: Partial<HttpConnectionManagerConfig>,
): { head: RequestHead; info: StreamInfo } {
  const head = requestHead(headers);
  const info = new StreamInfo(0, 0, "127.0.0.1:1", `${remoteIp}:5`, "");
  mutateRequestHeaders(head, info, remoteIp, "http", configOf(config));
  return { head, info };
}
