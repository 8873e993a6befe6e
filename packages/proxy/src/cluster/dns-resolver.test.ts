// The resolver of clusters: /etc/hosts, search domains, several servers, and waits that end.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { type NameAnswer, startTestNameServer, type TestNameServer } from "../testing/name-server.ts";
import { DnsResolver, type DnsResolverOptions } from "./dns-resolver.ts";
import type { DnsLookupFamily } from "./dns-lookup.ts";

/** Of 247 characters, of which 253 are a name's limit. */
const longName = `${`${"a".repeat(59)}.`.repeat(4)}example`;

describe("the resolver of clusters", () => {
  const folder = temporaryFolder("tulle-resolver-");
  const hostsPath = path.join(folder, "hosts");
  const resolverPath = path.join(folder, "resolv.conf");
  let server: TestNameServer;
  let other: TestNameServer;

  before(async () => {
    server = await startTestNameServer();
    other = await startTestNameServer();
    fs.writeFileSync(hostsPath, "10.0.0.1 db Db.example\n::1 six\n10.0.0.9 half\n");
    fs.writeFileSync(resolverPath, "search shop.svc.test svc.test\noptions ndots:2 timeout:1 attempts:1\n");
    const names: Record<string, NameAnswer> = {
      "cart.shop.svc.test": { a: ["10.0.1.1"], ttlSeconds: 7 },
      "cart.svc.test": { a: ["10.0.1.2"] },
      "only.svc.test": { a: ["10.0.1.3"] },
      "a.b.example": { a: ["10.0.1.4", "10.0.1.4", "10.0.1.5"], ttlSeconds: 0 },
      "plain.example": { a: ["10.0.1.6"] },
      half: { a: ["10.9.9.9"], aaaa: ["fd00::9"] },
      [longName]: { a: ["10.0.1.7"] },
      "broken.example": { code: 2 },
      "silent.example": { isSilent: true },
    };
    for (const [name, answer] of Object.entries(names)) server.names.set(name, answer);
    other.names.set("broken.example", { a: ["10.0.2.1"] });
  });
  after(() => {
    server.close();
    other.close();
  });

  const look = (name: string, family: DnsLookupFamily = "v4_preferred", more: DnsResolverOptions = {}) =>
    new DnsResolver({ hostsPath, resolverPath, servers: [server.address], ...more }).lookup(name, family);

  const rows: readonly (readonly [string, string, object, DnsLookupFamily?])[] = [
    ["an address", "10.1.2.3", { addresses: ["10.1.2.3"] }],
    ["a name of /etc/hosts", "DB.example", { addresses: ["10.0.0.1"] }],
    ["of the other family", "six", { addresses: ["::1"] }],
    ["of /etc/hosts for one family alone", "half.", { addresses: ["fd00::9"], ttlMs: 60_000 }, "v6_only"],
    ["localhost", "localhost", { addresses: ["127.0.0.1"] }],
    ["beneath it", "a.localhost.", { addresses: ["::1"] }, "v6_only"],
    ["the first search domain", "cart", { addresses: ["10.0.1.1"], ttlMs: 7000 }],
    ["the next one", "only", { addresses: ["10.0.1.3"], ttlMs: 60_000 }],
    ["a name with dots enough", "a.b.example", { addresses: ["10.0.1.4", "10.0.1.5"], ttlMs: 0 }],
    ["one with too few, after the search domains", "plain.example", { addresses: ["10.0.1.6"], ttlMs: 60_000 }],
    ["a full name", "plain.example.", { addresses: ["10.0.1.6"], ttlMs: 60_000 }],
    ["nobody's name", "nobody.example", { addresses: [] }],
    ["nobody's name, too long for the search domains", `b${longName.slice(1)}`, { addresses: [] }],
    ["a name that DNS does not carry", "a..b", { addresses: [] }],
  ];
  for (const [what, name, expected, family] of rows) {
    test(what, async () => assert.deepEqual(await look(name, family), expected));
  }

  test("localhost is what the machine's file says of it, for one family, too", async () => {
    const oneFamily = path.join(folder, "one-family");
    fs.writeFileSync(oneFamily, "127.0.0.1 localhost\n");
    for (const family of ["auto", "all", "v4_preferred"] as const) {
      assert.deepEqual((await look("localhost", family, { hostsPath: oneFamily })).addresses, ["127.0.0.1"], family);
    }
  });

  test("a name that is too long for the search domains is asked for all the same", async () => {
    const dots = path.join(folder, "dots.conf");
    fs.writeFileSync(dots, "search shop.svc.test\noptions ndots:5 timeout:1 attempts:1\n");
    const { addresses } = await look(longName, "v4_only", { resolverPath: dots });
    assert.deepEqual(addresses, ["10.0.1.7"]);
  });

  test("a full name is not looked for elsewhere", async () => {
    await look("absolute.");
    await look("alone", "v4_only", { usesSearchDomains: false });
    assert.equal(server.asked("absolute.svc.test") + server.asked("alone.svc.test"), 0);
    assert.equal(server.asked("alone"), 1);
  });

  test("another server is asked where the first one fails", async () => {
    await assert.rejects(look("broken.example."), { code: "ESERVFAIL" });
    const { addresses } = await look("broken.example.", "v4_only", { servers: [server.address, other.address] });
    assert.deepEqual(addresses, ["10.0.2.1"]);
  });

  test("of a silent server no other name is asked, and the wait ends", async () => {
    const earlier = server.asked("silent.example.shop.svc.test");
    server.names.set("silent.example.shop.svc.test", { isSilent: true });
    await assert.rejects(look("silent.example", "v4_only"), { code: "ETIMEOUT" });
    assert.equal(server.asked("silent.example.shop.svc.test"), earlier + 1);
    assert.equal(server.asked("silent.example"), 0);
  });

  test("who asks at once for the same is told the same", async () => {
    const resolver = new DnsResolver({ hostsPath, resolverPath, servers: [server.address] });
    await Promise.all(Array.from({ length: 20 }, () => resolver.lookup("only.svc.test.", "v4_only")));
    assert.equal(server.asked("only.svc.test"), 2);
  });

  test("questions that are open at a time have each a port of its own", async () => {
    const resolver = new DnsResolver({ hostsPath, resolverPath, servers: [server.address] });
    const names = Array.from({ length: 8 }, (_, index) => `held-${index}.example`);
    for (const name of names) server.names.set(name, { isSilent: true });
    await Promise.allSettled(names.map((name) => resolver.lookup(`${name}.`, "v4_only")));
    const ports = names.map((name) => server.askedFrom(name)[0]);
    assert.equal(new Set(ports).size, names.length, String(ports));
  });

  test("a fallback is for a machine that names no server", async () => {
    const isFallback = true;
    assert.deepEqual((await look("only.svc.test.", "v4_only", { isFallback })).addresses, ["10.0.1.3"]);
    const known = path.join(folder, "known.conf");
    fs.writeFileSync(known, "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n");
    // Nobody has that port but root, and whoever answers there knows no such name.
    const asked = server.asked("only.svc.test");
    await look("only.svc.test.", "v4_only", { isFallback, resolverPath: known }).catch(() => undefined);
    assert.equal(server.asked("only.svc.test"), asked);
  });
});
