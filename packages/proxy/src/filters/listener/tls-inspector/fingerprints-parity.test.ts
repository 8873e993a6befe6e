// JA3 and JA4 of hellos beside a stock Envoy: those of real clients with one thing after another changed, hellos made
// by hand with GREASE and broken lists, and hellos with bytes changed at random.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import { after, before, test } from "node:test";
import type tls from "node:tls";
import { debianTool } from "../../../../../../tests/tools/debian-tool.ts";
import { inTime, waitFor } from "../../../../../../tests/tools/processes.ts";
import { firstBytesOf, helloOf } from "../../../testing/captured-hello.ts";
import { extension as typeUrl, fileAccessLog, loopback, staticCluster } from "../../../testing/envoy-json.ts";
import { extension, helloFrom, type HelloParts, serverName, versions } from "../../../testing/made-hello.ts";
import { type Side, type Sides, startSides } from "../../../testing/parity-pair.ts";
import { seededRandom } from "../../../testing/random-requests.ts";

const format = "%DOWNSTREAM_REMOTE_PORT%\t%TLS_JA3_FINGERPRINT%\t%TLS_JA4_FINGERPRINT%\n";

function bootstrap(port: number, log: string): string {
  const inspector = {
    "@type": typeUrl("filters.listener.tls_inspector.v3.TlsInspector"),
    enable_ja3_fingerprinting: true,
    enable_ja4_fingerprinting: true,
  };
  const proxy = { "@type": typeUrl("filters.network.tcp_proxy.v3.TcpProxy"), stat_prefix: "tcp", cluster: "app" };
  const listener = {
    name: "main",
    address: loopback(0),
    access_log: [fileAccessLog(log, format)],
    listener_filters: [{ name: "tls", typed_config: inspector }],
    filter_chains: [{ filters: [{ name: "tcp", typed_config: proxy }] }],
  };
  const clusters = [staticCluster("app", [port])];
  return JSON.stringify({ admin: { address: loopback(0) }, static_resources: { listeners: [listener], clusters } });
}

let sides: Sides;
before(async () => {
  // A hello is no request, which it says, and ends the connection.
  sides = await startSides(http.createServer(), 1, bootstrap);
});
after(() => sides?.stop());

/** Fingerprints of each hello, which stand in the log by the port of its client: all are open at once. */
async function fingerprintsBy({ ports, log }: Side, hellos: readonly Buffer[]): Promise<readonly string[]> {
  const sizeBefore = fs.existsSync(log) ? fs.statSync(log).size : 0;
  const sockets = hellos.map(() => net.connect(ports.get("main")!, "127.0.0.1").resume());
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  const clientPorts = sockets.map(({ localPort }) => String(localPort));
  // However it ends: `once` would take a reset for a failure.
  const ends = sockets.map(
    (socket) => new Promise((closed) => void socket.on("error", () => undefined).on("close", closed)),
  );
  for (const [index, socket] of sockets.entries()) socket.write(hellos[index]!);
  await inTime(Promise.all(ends), "the end of each connection");
  const lines = (): readonly string[] => fs.readFileSync(log).subarray(sizeBefore).toString().split("\n").slice(0, -1);
  await waitFor(() => fs.existsSync(log) && lines().length === hellos.length, { what: "a line for each hello" });
  const byPort = new Map(
    lines().map((line) => [line.slice(0, line.indexOf("\t")), line.slice(line.indexOf("\t") + 1)]),
  );
  return clientPorts.map((port) => byPort.get(port)!);
}

async function compare(
  hellos: readonly { readonly name: string; readonly hello: Buffer }[],
): Promise<readonly string[]> {
  const bytes = hellos.map(({ hello }) => hello);
  const [ours, envoys] = [await fingerprintsBy(sides.ours, bytes), await fingerprintsBy(sides.envoy, bytes)];
  const byName = (found: readonly string[]): object =>
    Object.fromEntries(hellos.map(({ name, hello }, index) => [`${name}: ${hello.toString("hex")}`, found[index]]));
  assert.deepEqual(byName(ours), byName(envoys));
  return ours;
}

const nodes: Readonly<Record<string, tls.ConnectionOptions>> = {
  "no option": {},
  "a name": { servername: "shop.example" },
  "TLS 1.2 alone": { maxVersion: "TLSv1.2" },
  "TLS 1.3 alone": { minVersion: "TLSv1.3" },
  "TLS 1.0 at most": { minVersion: "TLSv1", maxVersion: "TLSv1", ciphers: "DEFAULT@SECLEVEL=0" },
  "TLS 1.1 at most": { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" },
  "one cipher": { ciphers: "ECDHE-RSA-AES128-GCM-SHA256", maxVersion: "TLSv1.2" },
  "every cipher": { ciphers: "ALL:COMPLEMENTOFALL@SECLEVEL=0" },
  "HTTP/2": { ALPNProtocols: ["h2", "http/1.1"] },
  "a protocol of one letter": { ALPNProtocols: ["q"] },
  "a protocol of signs": { ALPNProtocols: ["-a.", "h2"] },
  "a protocol that begins with a sign": { ALPNProtocols: ["_b"] },
  "a protocol that ends with one": { ALPNProtocols: ["istio-peer-exchange/"] },
  "sixty protocols": { ALPNProtocols: Array.from({ length: 60 }, (_, index) => `${index}-${"p".repeat(80)}`) },
  "one curve": { ecdhCurve: "P-384" },
  "three curves": { ecdhCurve: "P-521:X25519:P-256" },
  "other algorithms": { sigalgs: "RSA-PSS+SHA512:ECDSA+SHA256" },
};

test("hellos of Node", async () => {
  const hellos = [];
  for (const [name, options] of Object.entries(nodes)) hellos.push({ name, hello: await helloOf(options) });
  const found = await compare(hellos);
  // JA4 of OpenSSL's clients is the same for all servers, and each row says something else.
  assert.ok(new Set(found).size >= hellos.length - 1, found.join("\n"));
  for (const line of found)
    assert.match(line, /^[0-9a-f]{32}\tt[01]\d[di]\d{4}[0-9A-Za-z]{2}_[0-9a-f]{12}_[0-9a-f]{12}$/);
});

const openSslOptions = [
  "",
  "-noservername",
  "-servername a.example -alpn http/1.1,h2",
  "-tls1_2 -cipher ECDHE+AESGCM:!PSK",
  "-tls1_3 -ciphersuites TLS_CHACHA20_POLY1305_SHA256",
  "-tls1_1 -cipher ALL@SECLEVEL=0",
  "-groups X448:P-256:ffdhe2048",
  "-curves P-521",
  "-sigalgs ed25519:RSA+SHA256:ECDSA+SHA1",
  "-no_ticket -status",
  "-maxfraglen 1024 -use_srtp SRTP_AES128_CM_SHA1_80",
  "-legacy_renegotiation -no_etm",
  "-nextprotoneg h2 -tls1_2",
];

test("hellos of openssl s_client", async () => {
  const program = await debianTool("openssl");
  const hellos = [];
  for (const options of openSslOptions) {
    const hello = await firstBytesOf((port) => {
      const args = ["s_client", "-connect", `127.0.0.1:${port}`, ...options.split(" ").filter((part) => part !== "")];
      spawn(program, args, { stdio: ["pipe", "ignore", "ignore"] });
    });
    hellos.push({ name: options, hello });
  }
  await compare(hellos);
});

const u16 = (...values: readonly number[]): Buffer =>
  Buffer.from(values.flatMap((value) => [value >> 8, value & 0xff]));
const list8 = (body: Buffer): Buffer => Buffer.concat([Buffer.from([body.length]), body]);
const list16 = (body: Buffer): Buffer => Buffer.concat([u16(body.length), body]);
const shop = serverName(Buffer.from("shop.example"));
const modern = versions(0x0a0a, 0x0304, 0x0303);
const groups = (...values: readonly number[]): Buffer => extension(10, list16(u16(...values)));
const points = (...values: readonly number[]): Buffer => extension(11, list8(Buffer.from(values)));
const algorithms = (...values: readonly number[]): Buffer => extension(13, list16(u16(...values)));
const protocol = (text: string): Buffer => extension(16, list16(list8(Buffer.from(text, "latin1"))));
const grease = (value: number): Buffer => extension(value, Buffer.alloc(0));
const suites = u16(0x3a3a, 0x1301, 0x1303, 0xc02b, 0x00ff, 0xc02f);
const manyTypes = Array.from({ length: 120 }, (_, index) => extension(1000 + index, Buffer.from([index])));

const made: Readonly<Record<string, HelloParts & { readonly list?: readonly Buffer[] }>> = {
  "no extensions": {},
  "no extensions of TLS 1.0": { version: 0x0301 },
  "an old version beside the list": { version: 0x0301, list: [modern] },
  "GREASE as a browser has it": {
    suites,
    list: [
      grease(0xfafa),
      shop,
      groups(0x8a8a, 29, 23),
      points(0),
      algorithms(0x0403, 0x0804),
      protocol("h2"),
      modern,
      extension(0xbaba, Buffer.from([0])),
    ],
  },
  "nearly GREASE": {
    suites: u16(0x0a1a, 0x1a0a, 0x0a0b, 0x1301),
    list: [modern, grease(0x0a1a), grease(0xfa0a), groups(0x1a2a), algorithms(0x2a2a, 0x0403, 0x2a3a)],
  },
  "GREASE alone": { suites: u16(0x1a1a, 0x2a2a, 0x1301), list: [grease(0x0a0a), grease(0x1a1a)] },
  "a name and protocols alone": { list: [shop, protocol("h2")] },
  "order of extensions": { suites: u16(0xc02f, 0x1301), list: [modern, points(1, 0, 2), groups(23, 29), shop] },
  "more than 99 of each": {
    suites: u16(...Array.from({ length: 150 }, (_, index) => 0x1301 + index)),
    list: [modern, ...manyTypes],
  },
  "no version in the list": { list: [extension(43, Buffer.from([0]))] },
  "GREASE in the list of versions alone": { list: [versions(0x0a0a)] },
  "a version of the future": { list: [versions(0x0303, 0x7f1c)] },
  "a version that is half a number": { list: [extension(43, Buffer.from([3, 3, 4, 3]))] },
  "a list of versions that ends too early": { list: [extension(43, Buffer.from([9, 3, 4]))] },
  "an empty list of versions": { list: [extension(43, Buffer.alloc(0))] },
  "half a group": { list: [modern, extension(10, Buffer.from([0, 5, 0, 29, 0, 23, 1]))] },
  "a list of groups with a wrong length": { list: [modern, extension(10, Buffer.from([0, 99, 0, 29]))] },
  "an empty list of groups": { list: [modern, extension(10, Buffer.alloc(0))] },
  "no point formats in the list": { list: [modern, extension(11, Buffer.alloc(0)), groups(29)] },
  "half an algorithm": { list: [modern, extension(13, Buffer.from([0, 5, 4, 3, 8, 4, 7]))] },
  "no algorithm": { list: [modern, extension(13, Buffer.alloc(1))] },
  "protocols without any": { list: [modern, extension(16, Buffer.from([0, 0]))] },
  "protocols with an empty one": { list: [modern, extension(16, Buffer.from([0, 1, 0]))] },
  "a protocol that ends too early": { list: [modern, extension(16, Buffer.from([0, 9, 9, 104, 50]))] },
  "a protocol behind a wrong length": { list: [modern, extension(16, Buffer.from([7, 7, 2, 104, 50]))] },
  ...Object.fromEntries(
    ["\xabx", "a\xff", "\0\0", "A", "9Z", " h", "h ", "\xe4\xf6"].map((text) => [
      `the protocol ${JSON.stringify(text)}`,
      { list: [modern, protocol(text)] },
    ]),
  ),
  "an extension twice": { list: [modern, groups(29), groups(23)] },
  "an unknown extension twice": { list: [modern, grease(1234), grease(1234)] },
  "SSL 3.0": { version: 0x0300 },
  "an odd list of suites": { suites: Buffer.from([0x13]) },
  "no suite that anybody has": { suites: u16(0x0a0a, 0x7777) },
  "compression only": { compressions: Buffer.from([1]) },
  "an empty name": { list: [serverName(Buffer.alloc(0))] },
  "a name of another type": { list: [modern, serverName(Buffer.from("a"), 1)] },
};

const helloOfParts = ({ list, ...parts }: HelloParts & { readonly list?: readonly Buffer[] }): Buffer =>
  helloFrom(list === undefined ? parts : { ...parts, extensions: Buffer.concat(list) });

test("hellos made by hand", async () => {
  await compare(Object.entries(made).map(([name, parts]) => ({ name, hello: helloOfParts(parts) })));
});

/** One to three bytes behind the header of the message are others. */
function changed(hello: Buffer, random: () => number): Buffer {
  const bytes = Buffer.from(hello);
  const first = 9;
  for (let count = 1 + Math.floor(random() * 3); count > 0; count -= 1) {
    bytes[first + Math.floor(random() * (bytes.length - first))] = Math.floor(random() * 256);
  }
  return bytes;
}

test("hellos with bytes changed at random", async () => {
  const random = seededRandom(11);
  const origins = Object.values(made).map(helloOfParts);
  const hellos = Array.from({ length: 400 }, (_, index) => ({
    name: String(index),
    hello: changed(origins[index % origins.length]!, random),
  }));
  const found = await compare(hellos);
  const fingerprinted = found.filter((line) => line !== "-\t-");
  assert.ok(fingerprinted.length > 100 && fingerprinted.length < 400, `${fingerprinted.length}`);
});
