// What the connection manager does to response headers: who answered, when, and to which request.
import assert from "node:assert/strict";
import { test } from "node:test";
import { handBuiltConnectionManager, prefixRoutes } from "../testing/hand-built-runtime.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import type { HttpConnectionManagerConfig } from "./http-connection-manager-config.ts";
import { HeaderMap } from "../http/header-map.ts";
import type { RequestHead } from "../http/message.ts";
import { mutateResponseHeaders } from "./response-headers.ts";

const now = "Tue, 14 Nov 2023 22:13:21 GMT";
const then = "Fri, 02 Jan 1970 00:00:00 GMT";

interface Case {
  readonly name: string;
  readonly headers: readonly string[];
  readonly config: Partial<HttpConnectionManagerConfig>;
  readonly expected: readonly string[];
}

const cases: readonly Case[] = [
  { name: "what is missing is added", headers: [], config: {}, expected: ["date", now, "server", "ours"] },
  {
    name: "the back end's date stays, its name does not",
    headers: ["server", "theirs", "date", then],
    config: {},
    expected: ["server", "ours", "date", then],
  },
  {
    name: "append_if_absent",
    headers: ["server", "theirs", "date", then],
    config: { serverHeaderTransformation: "append_if_absent" },
    expected: ["server", "theirs", "date", then],
  },
  {
    name: "pass_through adds no name either",
    headers: ["date", then],
    config: { serverHeaderTransformation: "pass_through" },
    expected: ["date", then],
  },
  {
    name: "via goes behind the one that is there",
    headers: ["via", "1.1 theirs", "server", "theirs", "date", then],
    config: { via: "ours" },
    expected: ["via", "1.1 theirs", "server", "ours", "date", then, "via", "ours"],
  },
  {
    name: "the request's id",
    headers: ["date", then, "server", "theirs"],
    config: { alwaysSetRequestIdInResponse: true },
    expected: ["date", then, "server", "ours", "x-request-id", "7"],
  },
];

test("response headers", async (t) => {
  for (const { name, headers, config, expected } of cases) {
    await t.test(name, () => {
      const response = { status: 200, headers: new HeaderMap([...headers]) };
      mutateResponseHeaders(response, request, configOf(config), new ManualClock());
      assert.deepEqual(response.headers.entries, expected);
    });
  }
});

const request: RequestHead = {
  method: "GET",
  scheme: "http",
  authority: "a",
  path: "/",
  protocol: "HTTP/1.1",
  headers: new HeaderMap(["x-request-id", "7"]),
};

function configOf(overrides: Partial<HttpConnectionManagerConfig>): HttpConnectionManagerConfig {
  return handBuiltConnectionManager(prefixRoutes({}), { log: () => undefined }, { serverName: "ours", ...overrides });
}
