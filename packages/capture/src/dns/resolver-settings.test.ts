// resolv.conf as the C library reads it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { nameserversIn, readResolverSettings } from "./resolver-settings.ts";

const defaults = {
  servers: ["127.0.0.1"],
  namesServers: false,
  searchDomains: [],
  ndots: 1,
  timeoutMs: 5000,
  attempts: 2,
};

test("name servers, search domains and options are read", () => {
  const text = `# made by hand
nameserver 10.96.0.10
nameserver fe80::1%eth0 ; the router
nameserver not-an-address
search shop.svc.cluster.local svc.cluster.local. cluster.local
options ndots:5 timeout:1 attempts:3 edns0
`;
  assert.deepEqual(readResolverSettings(text), {
    servers: ["10.96.0.10", "fe80::1%eth0"],
    namesServers: true,
    searchDomains: ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local"],
    ndots: 5,
    timeoutMs: 1000,
    attempts: 3,
  });
  assert.deepEqual(nameserversIn(text), ["10.96.0.10", "fe80::1%eth0"]);
});

test("an empty file asks this machine", () => assert.deepEqual(readResolverSettings(""), defaults));

test("more than the C library takes is not taken", () => {
  const servers = ["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"].map((address) => `nameserver ${address}`).join("\n");
  const settings = readResolverSettings(
    `${servers}\noptions timeout:900 attempts:0 ndots:99\ndomain a.example\nsearch b.example`,
  );
  assert.deepEqual(settings, {
    servers: ["1.1.1.1", "2.2.2.2", "3.3.3.3"],
    namesServers: true,
    searchDomains: ["b.example"],
    ndots: 15,
    timeoutMs: 30_000,
    attempts: 1,
  });
  assert.equal(nameserversIn(servers).length, 4);
});
