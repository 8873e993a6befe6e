/** Which service a name means, as tables. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hostCovers, hostsOverlap, parseServiceHost, resolveGateway, resolveHost } from "./resolve-host.ts";

const catalog = "catalog.shop.svc.cluster.local";
const isService = (name: string): boolean => name === catalog;

test("resolveHost", () => {
  const cases: readonly { readonly host: string; readonly expected: string }[] = [
    { host: "catalog", expected: catalog },
    { host: "catalog.shop", expected: catalog },
    { host: "catalog.shop.svc", expected: catalog },
    { host: catalog, expected: catalog },
    { host: "Catalog.Shop.SVC.cluster.local.", expected: catalog },
    { host: "other", expected: "other.shop.svc.cluster.local" },
    { host: "other.test.svc", expected: "other.test.svc.cluster.local" },
    // No such service: a host on the internet.
    { host: "example.com", expected: "example.com" },
    { host: "api.example.com", expected: "api.example.com" },
    { host: "*", expected: "*" },
    { host: "*.shop", expected: "*.shop" },
    { host: "10.0.0.1", expected: "10.0.0.1" },
    { host: "::1", expected: "::1" },
  ];
  for (const { host, expected } of cases) assert.equal(resolveHost(host, "shop", isService), expected, host);
});

test("parseServiceHost", () => {
  assert.deepEqual(parseServiceHost(catalog), { name: "catalog", namespace: "shop" });
  assert.equal(parseServiceHost("example.com"), undefined);
  assert.equal(parseServiceHost("a.b.c.svc.cluster.local"), undefined);
});

test("resolveGateway", () => {
  const cases: readonly { readonly reference: string; readonly expected: string }[] = [
    { reference: "mesh", expected: "mesh" },
    { reference: "public", expected: "shop/public" },
    { reference: "./public", expected: "shop/public" },
    { reference: "other/public", expected: "other/public" },
    { reference: "public.other", expected: "other/public" },
    { reference: "public.other.svc.cluster.local", expected: "other/public" },
  ];
  for (const { reference, expected } of cases) assert.equal(resolveGateway(reference, "shop"), expected, reference);
});

test("hostCovers and hostsOverlap", () => {
  const cases: readonly (readonly [pattern: string, host: string, covers: boolean, overlap: boolean])[] = [
    ["*", "a.b", true, true],
    ["*.b", "a.b", true, true],
    ["*.b", "x.a.b", true, true],
    ["*.b", "b", false, false],
    ["*.b", "*.a.b", true, true],
    ["*.a.b", "*.b", false, true],
    ["a.b", "*.b", false, true],
    ["a.b", "a.b", true, true],
    ["*.ab", "a.b", false, false],
    ["*.b", ".b", false, false],
  ];
  for (const [pattern, host, covers, overlap] of cases) {
    assert.equal(hostCovers(pattern, host), covers, `${pattern} covers ${host}`);
    assert.equal(hostsOverlap(pattern, host), overlap, `${pattern} overlaps ${host}`);
  }
});
