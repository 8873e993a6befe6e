// Which route a request takes, and what TypeScript refuses of handlers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Endpoint, endpoints, events, json, text } from "@tulle/config/api";
import { type Handlers, routeOf, routesOf, routesOn } from "./routes.ts";

const handlers = Object.fromEntries(Object.keys(endpoints).map((name) => [name, () => ({ text: "" })]));
const routes = routesOf<Record<string, Endpoint>>(endpoints, handlers);

const cases: readonly { readonly asked: string; readonly expected: string | undefined; readonly allowed?: string }[] = [
  { asked: "GET /api/v1/resources/Pod", expected: "list a kind" },
  { asked: "GET /api/v1/resources/", expected: "list a kind" },
  { asked: "GET /api/v1/resources", expected: undefined },
  { asked: "GET /api/v1/resources/Pod/shop/a", expected: "get one object" },
  { asked: "GET /api/v1/resources/Pod/shop", expected: "get one object" },
  { asked: "PUT /api/v1/resources/Pod", expected: "create or replace one object" },
  { asked: "POST /api/v1/resources/Pod", expected: undefined, allowed: "GET, PUT, DELETE" },
  { asked: "POST /api/v1/ca", expected: undefined, allowed: "GET" },
  { asked: "GET /debug/", expected: undefined },
  { asked: "GET /debug", expected: "this list" },
];

for (const { asked, expected, allowed = "" } of cases) {
  test(asked, () => {
    const [method = "", path = ""] = asked.split(" ");
    const onPath = routesOn(routes, path);
    assert.equal(routeOf(onPath, method, path)?.endpoint.summary, expected);
    if (expected === undefined)
      assert.equal([...new Set(onPath.map((each) => each.endpoint.method))].join(", "), allowed);
  });
}

test("TypeScript refuses a missing handler, and one with another answer", () => {
  const group = {
    count: { method: "GET", path: "/count", answer: json<{ readonly count: number }>(), summary: "" },
    words: { method: "GET", path: "/words", answer: text(), summary: "" },
    ticks: { method: "GET", path: "/ticks", answer: events<{ readonly at: number }>("a/b"), summary: "" },
    page: { method: "GET", path: "/page", answer: { kind: "asset" }, summary: "" },
  } as const;
  const good: Handlers<typeof group> = {
    count: () => ({ status: 200, json: { count: 1 } }),
    words: () => ({ text: "" }),
    ticks: () => ({ follow: (stream) => stream.send([{ at: 1 }]) }),
    page: () => ({ bytes: new Uint8Array(), contentType: "text/css" }),
  };
  // @ts-expect-error another value
  const value: Handlers<typeof group> = { ...good, count: () => ({ status: 200, json: { count: "1" } }) };
  // @ts-expect-error another kind
  const kind: Handlers<typeof group> = { ...good, words: () => ({ status: 200, json: "" }) };
  // @ts-expect-error other events
  const event: Handlers<typeof group> = { ...good, ticks: () => ({ follow: (stream) => stream.send([{ on: 1 }]) }) };
  const { page, ...rest } = good;
  // @ts-expect-error none for the page
  const missing: Handlers<typeof group> = rest;
  assert.ok([value, kind, event, missing, page].every((each) => each !== undefined));
});
