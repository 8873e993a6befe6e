// What callers send by the declarations of api.ts, and what TypeScript refuses of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { endpoints, parseResourcePath } from "./api.ts";
import { pathOf } from "./endpoint.ts";

const object = { kind: "Pod", namespace: "shop", name: "web-1" };

const cases: readonly { readonly name: string; readonly path: string; readonly expected: string }[] = [
  { name: "no parameters", path: pathOf(endpoints.pending, {}), expected: "/debug/pending" },
  { name: "of the path", path: pathOf(endpoints.readResource, object), expected: "/api/v1/resources/Pod/shop/web-1" },
  {
    name: "an empty one",
    path: pathOf(endpoints.readResource, { ...object, namespace: "" }),
    expected: "/api/v1/resources/Pod/-/web-1",
  },
  {
    name: "one with words that a path may not have",
    path: pathOf(endpoints.readResource, { ...object, name: "a/b?c#{kind}" }),
    expected: "/api/v1/resources/Pod/shop/a%2Fb%3Fc%23%7Bkind%7D",
  },
  {
    name: "of the query, a list",
    path: pathOf(endpoints.watch, { kinds: "Pod,Service", resourceVersion: 7 }),
    expected: "/api/v1/watch?kinds=Pod,Service&resourceVersion=7",
  },
  {
    name: "of the query, with words of its own",
    path: pathOf(endpoints.listResources, { kind: "Pod", namespace: "a&b=c" }),
    expected: "/api/v1/resources/Pod?namespace=a%26b%3Dc",
  },
  {
    name: "of the query, left out",
    path: pathOf(endpoints.rotateRoot, { introduceSeconds: 0, force: undefined }),
    expected: "/api/v1/ca/rotate-root?introduceSeconds=0",
  },
];

for (const { name, path, expected } of cases) test(name, () => assert.equal(path, expected));

test("a path of an object says what it was made of", () => {
  for (const each of [object, { ...object, namespace: "" }, { ...object, name: "a/b {kind} -" }]) {
    const { kind, ...rest } = each;
    assert.deepEqual(parseResourcePath(pathOf(endpoints.readResource, each)), { kind, object: rest });
  }
});

test("no two endpoints are one", () => {
  const all = Object.values(endpoints).map(({ method, path }) => `${method} ${path.replaceAll(/\{\w+\}/g, "{}")}`);
  assert.equal(new Set(all).size, all.length);
});

test("TypeScript refuses what an endpoint does not take", () => {
  // @ts-expect-error a parameter of the path is missing
  pathOf(endpoints.readResource, { kind: "Pod", name: "a" });
  // @ts-expect-error a parameter that there is not
  pathOf(endpoints.listResources, { kind: "Pod", labels: "a" });
});
