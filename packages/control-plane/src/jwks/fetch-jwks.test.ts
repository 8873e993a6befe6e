// Fetches of key sets from a server of this process: what is taken, what is refused, and which addresses are never
// asked.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { OwnPrograms } from "@tulle/capture";
import { startProcess } from "../../../../tests/tools/processes.ts";
import { fetchJwks } from "./fetch-jwks.ts";
import { isFetchableAddress } from "./fetchable-address.ts";
import { meshEndpoint } from "./mesh-endpoint.ts";

const { publicKey } = generateKeyPairSync("ed25519");
const keySet = JSON.stringify({ keys: [publicKey.export({ format: "jwk" })] });
const jwk = publicKey.export({ format: "jwk" });
const cleaned = JSON.stringify({ keys: [{ kty: jwk["kty"], crv: jwk["crv"], x: jwk["x"] }] });

const answers: Readonly<Record<string, (response: http.ServerResponse, origin: string) => void>> = {
  "/keys": (response) => response.end(keySet),
  "/.well-known/openid-configuration": (response, origin) =>
    response.end(JSON.stringify({ jwks_uri: `${origin}/keys` })),
  "/leads-astray": (response) => response.end(JSON.stringify({ jwks_uri: "http://169.254.169.254/latest" })),
  "/leads-nowhere": (response) => response.end("{}"),
  "/moved": (response) => response.writeHead(302, { location: "/keys" }).end(),
  "/missing": (response) => response.writeHead(404).end(keySet),
  "/large": (response) => response.end(`{"keys":[],"x":"${"x".repeat(300_000)}"}`),
  "/page": (response) => response.end("<secret>"),
  "/slow": (response) => response.write("{"),
};

let origin = "";
let hosts: string[] = [];
const server = http.createServer((request, response) => {
  hosts.push(request.headers.host ?? "");
  answers[request.url ?? ""]!(response, origin);
});

before(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

const nowhere = { resolve: (): undefined => undefined };
const cases: readonly { readonly path: string; readonly isDiscovery?: boolean; readonly expected: unknown }[] = [
  { path: "/keys", expected: { jwks: cleaned } },
  { path: "/.well-known/openid-configuration", isDiscovery: true, expected: { jwks: cleaned } },
  {
    path: "/leads-astray",
    isDiscovery: true,
    expected: { problem: "169.254.169.254 has no address that keys are fetched from" },
  },
  { path: "/leads-nowhere", isDiscovery: true, expected: { problem: "the discovery document names no jwks_uri" } },
  { path: "/moved", expected: { problem: "answered with status 302" } },
  { path: "/missing", expected: { problem: "answered with status 404" } },
  { path: "/large", expected: { problem: "the answer is larger than 262144 bytes" } },
  { path: "/page", expected: { problem: "the JSON Web Key Set is not JSON" } },
  { path: "/slow", expected: { problem: "no complete answer within 300 ms" } },
];

for (const { path, isDiscovery = false, expected } of cases) {
  test(`fetch ${path}`, async () => {
    const timeoutMs = path === "/slow" ? 300 : 10_000;
    assert.deepEqual(await fetchJwks({ url: origin + path, isDiscovery }, timeoutMs, nowhere), expected);
  });
}

for (const [url, problem] of [
  ["file:///etc/passwd", "not an http or https URL without credentials"],
  ["http://169.254.169.254/keys", "169.254.169.254 has no address that keys are fetched from"],
  ["http://[::ffff:169.254.169.254]/keys", "::ffff:a9fe:a9fe has no address that keys are fetched from"],
  ["http://0.0.0.0/keys", "0.0.0.0 has no address that keys are fetched from"],
] as const) {
  test(`refuse ${url}`, async () => {
    assert.deepEqual(await fetchJwks({ url, isDiscovery: false }, 5000, nowhere), { problem });
  });
}

test("a Service of the mesh is asked at an endpoint, by its own name", async () => {
  hosts = [];
  const port = Number(new URL(origin).port);
  const location = { url: "http://issuer.auth.svc.cluster.local/keys", isDiscovery: false };
  const found = await fetchJwks(location, 5000, { resolve: () => ({ address: "127.0.0.1", port }) });
  assert.deepEqual(found, { jwks: cleaned });
  assert.deepEqual(hosts, ["issuer.auth.svc.cluster.local"]);
  const problem = "issuer.auth.svc.cluster.local has no ready endpoint for the port";
  assert.deepEqual(await fetchJwks(location, 5000, { resolve: () => "none" }), { problem });
});

test("addresses", () => {
  for (const address of ["127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "203.0.113.1", "2001:db8::1"]) {
    assert.ok(isFetchableAddress(address), address);
  }
  for (const address of [
    "169.254.1.1",
    "224.0.0.1",
    "255.255.255.255",
    "fe80::1",
    "ff02::1",
    "::",
    "fd00:ec2::254",
    "x",
  ]) {
    assert.ok(!isFetchableAddress(address), address);
  }
});

test("which hosts are Services of the mesh", () => {
  const hostname = "issuer.auth.svc.cluster.local";
  const service = { hostname, name: "issuer", namespace: "auth", addresses: [], selector: {}, ports: [] };
  const endpoint = { address: "10.0.0.1", port: 8080, labels: {}, workload: "issuer", namespace: "auth" };
  const endpoints = { byServicePort: new Map([[`${hostname}:80`, [endpoint]]]) };
  const find = (url: string): unknown => meshEndpoint(new URL(url), [service], endpoints);
  for (const host of [hostname, "issuer.auth", "issuer.auth.svc", `${hostname}.`]) {
    assert.deepEqual(find(`http://${host}/keys`), { address: "10.0.0.1", port: 8080, ofPod: true }, host);
  }
  const byHand = { byServicePort: new Map([[`${hostname}:80`, [{ ...endpoint, workload: "" }]]]) };
  const found = meshEndpoint(new URL(`http://${hostname}/keys`), [service], byHand);
  assert.deepEqual(found, { address: "10.0.0.1", port: 8080 });
  const inMesh = { byServicePort: new Map([[`${hostname}:80`, [{ ...endpoint, tlsMode: "istio" as const }]]]) };
  assert.deepEqual(meshEndpoint(new URL(`http://${hostname}/keys`), [{ ...service, identities: ["id"] }], inMesh), {
    address: "10.0.0.1",
    port: 8080,
    meshTls: { sni: `outbound_.80_._.${hostname}`, identities: ["id"] },
  });
  assert.equal(find(`http://${hostname}:81/keys`), "none");
  assert.equal(find("http://issuer/keys"), undefined);
});

// Only root starts another user's.
if (process.getuid?.() === 0) {
  test("another user at the address of a pod without a proxy gives no keys; behind an address written by hand he may", async () => {
    const script = `
process.setgroups([]); process.setgid(65534); process.setuid(65534);
const server = require("node:http").createServer((request, response) => response.end(process.argv[1]));
server.listen(0, "127.0.0.1", () => console.log("port " + server.address().port));
`;
    await using elsewhere = await startProcess("sleep", ["60"]);
    await using program = await startProcess(process.execPath, ["-e", script, keySet], { name: "keys" });
    const [, port] = await program.waitForOutput(/^port (\d+)$/m);
    const endpoint = { address: "127.0.0.1", port: Number(port) };
    const fetch = (ofPod: boolean): ReturnType<typeof fetchJwks> =>
      fetchJwks({ url: "http://issuer.auth/keys", isDiscovery: false }, 10_000, {
        resolve: () => (ofPod ? { ...endpoint, ofPod: true } : endpoint),
        own: new OwnPrograms(elsewhere.pid),
      });
    assert.deepEqual(await fetch(false), { jwks: cleaned });
    assert.deepEqual(await fetch(true), {
      problem: `127.0.0.1:${port} is held by a program of user nobody (uid 65534), and not by the pod's own program`,
    });
  });
}
