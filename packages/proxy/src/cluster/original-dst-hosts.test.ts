// Hosts that come with the connections that lead to them: how many there may be, when they leave, and which never come.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Logging, MetricRegistry } from "@tulle/telemetry";
import { HeaderMap } from "../http/header-map.ts";
import { StreamInfo } from "../http/stream-info.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { makeClusterStats } from "./cluster-stats.ts";
import { maxOriginalDstHosts, OriginalDstHosts } from "./original-dst-hosts.ts";
import { makeOriginalDstStats } from "./original-dst-stats.ts";

function made(headerName?: string) {
  const metrics = new MetricRegistry();
  const clock = new ManualClock();
  const stats = makeClusterStats(metrics, "c");
  const ownStats = makeOriginalDstStats(metrics, "c");
  const lines: string[] = [];
  const hosts = new OriginalDstHosts({
    clusterName: "c",
    headerName,
    portOverride: undefined,
    cleanupIntervalMs: 5000,
    isOwnListener: (_ip, port) => port === 15_001,
    stats,
    ownStats,
    clock,
    log: new Logging({ sink: ({ message }) => void lines.push(message) }).logger("upstream"),
  });
  return { hosts, clock, stats, ownStats, lines };
}

function aimedAt(ip: string, port = 80): StreamInfo {
  const info = new StreamInfo(0, 0, `${ip}:${port}`, "10.0.0.9:4000", "");
  info.listener = {
    connectionId: 1,
    name: "l",
    metadata: {},
    chainName: "",
    chainMetadata: {},
    ja3Fingerprint: "",
    ja4Fingerprint: "",
    upstreamSource: undefined,
    roundTripMs: () => undefined,
    directLocalAddress: "127.0.0.1:15001",
    directRemoteAddress: "10.0.0.1:1",
    originalDestination: { ip, port, text: `${ip}:${port}` },
  };
  return info;
}

const nth = (index: number): string => `10.1.${index >> 8}.${index & 255}`;

test("one destination is one host for as long as somebody uses it", () => {
  const { hosts, clock, stats } = made();
  const first = hosts.hostOf(aimedAt("10.0.0.1"))!;
  assert.equal(hosts.hostOf(aimedAt("10.0.0.1")), first);
  assert.deepEqual([first.addressText, stats.membershipTotal.value], ["10.0.0.1:80", 1]);
  // Used since the last clean-up, then in use, then neither.
  clock.advance(5000);
  first.activeRequests = 1;
  clock.advance(5000);
  first.activeRequests = 0;
  assert.deepEqual(hosts.hosts(), [first]);
  clock.advance(5000);
  assert.deepEqual([hosts.hosts(), first.active, stats.membershipTotal.value], [[], false, 0]);
  assert.notEqual(hosts.hostOf(aimedAt("10.0.0.1")), first);
});

test("of 20,000 destinations the newest are kept, within the limit", () => {
  const { hosts, stats, ownStats } = made();
  for (let index = 0; index < 20_000; index += 1) assert.notEqual(hosts.hostOf(aimedAt(nth(index))), undefined);
  const kept = hosts.hosts();
  assert.deepEqual([kept.length, stats.membershipTotal.value], [maxOriginalDstHosts, maxOriginalDstHosts]);
  assert.equal(kept.at(-1)!.addressText, `${nth(19_999)}:80`);
  assert.equal(ownStats.hostOverflow.value, 0);
});

test("where all are in use one more is refused and counted", () => {
  const { hosts, ownStats } = made();
  for (let index = 0; index < maxOriginalDstHosts; index += 1) hosts.hostOf(aimedAt(nth(index)))!.activeRequests = 1;
  assert.equal(hosts.hostOf(aimedAt("10.9.9.9")), undefined);
  assert.equal(ownStats.hostOverflow.value, 1);
  hosts.hosts()[7]!.activeRequests = 0;
  assert.notEqual(hosts.hostOf(aimedAt("10.9.9.9")), undefined);
});

test("a listener of the proxy's own is no destination: counted each time, told once", () => {
  const { hosts, ownStats, lines } = made();
  for (let index = 0; index < 3; index += 1) assert.equal(hosts.hostOf(aimedAt(nth(index), 15_001)), undefined);
  assert.deepEqual([hosts.hosts().length, ownStats.loop.value, lines.length], [0, 3, 1]);
  assert.match(lines[0]!, /refused to connect to a listener of this proxy/);
});

test("a cluster that has left gets no more hosts, as nobody would take them from it", () => {
  const { hosts, stats } = made();
  const first = hosts.hostOf(aimedAt("10.0.0.1"))!;
  hosts.stop();
  assert.equal(hosts.hostOf(aimedAt("10.0.0.2")), undefined);
  assert.deepEqual([first.active, hosts.hosts(), stats.membershipTotal.value], [false, [], 0]);
});

for (const written of ["[::1]:80", "[0:0:0:0:0:0:0:1]:80", "[0::0001]:80"]) {
  test(`a header's ${written} is ::1`, () => {
    const info = aimedAt("10.0.0.1");
    const headers = new HeaderMap(["x-to", written]);
    info.request = { method: "GET", scheme: "http", authority: "a", path: "/", protocol: "HTTP/1.1", headers };
    assert.equal(made("x-to").hosts.hostOf(info)?.addressText, "[::1]:80");
  });
}

test("what was not redirected has no host", () => {
  const info = aimedAt("10.0.0.1");
  info.listener = { ...info.listener!, originalDestination: undefined };
  assert.equal(made().hosts.hostOf(info), undefined);
});
