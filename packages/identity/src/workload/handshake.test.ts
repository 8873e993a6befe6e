// The bundles in real handshakes: mutual TLS 1.3 between Node's sockets, through a change of roots, and with OpenSSL's
// own client and server.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import test, { type TestContext } from "node:test";
import tls from "node:tls";
import { createAuthority } from "../authority/create-authority.ts";
import { CertificateAuthority } from "../authority/certificate-authority.ts";
import type { KeyAlgorithm } from "../keys/key-algorithm.ts";
import { debianTool } from "../../../../tests/tools/debian-tool.ts";
import { openssl } from "../testing/openssl.ts";
import { catalog, issueTo } from "../testing/workload.ts";
import { parseCertificate } from "../x509/certificate.ts";
import { verifyPeer } from "./verify-peer.ts";
import type { WorkloadCertificate } from "./workload-certificate.ts";

const payments = { ...catalog, serviceAccount: "payments" };

/** On the real clock, which TLS goes by. */
async function currentAuthority(algorithm?: KeyAlgorithm): Promise<CertificateAuthority> {
  const options = algorithm === undefined ? {} : { algorithm };
  const signing = await createAuthority({ trustDomain: "cluster.local", ...options, nowMs: Date.now() });
  return new CertificateAuthority({ trustDomain: "cluster.local", state: { phase: "steady", signing } });
}

const issue = (authority: CertificateAuthority, identity = catalog, algorithm?: KeyAlgorithm) =>
  issueTo(authority, { identity, nowMs: Date.now(), ...(algorithm === undefined ? {} : { algorithm }) });

function secure(workload: WorkloadCertificate) {
  return { key: workload.keyPem, cert: workload.chainPem, ca: workload.rootsPem, minVersion: "TLSv1.3" as const };
}

/** Who the other end is, from the chain that it sent; the TLS library has verified it already, and must agree. */
function peerOf(socket: tls.TLSSocket, mine: WorkloadCertificate, peerIs: "client" | "server"): string {
  const chain: Buffer[] = [];
  const seen = new Set<string>();
  let certificate: tls.DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  while (certificate?.raw !== undefined && !seen.has(certificate.fingerprint256)) {
    seen.add(certificate.fingerprint256);
    chain.push(certificate.raw);
    certificate = certificate.issuerCertificate;
  }
  const result = verifyPeer({ chain, roots: mine.roots, trustDomains: ["cluster.local"], peerIs, nowMs: Date.now() });
  assert.equal(result.ok, socket.authorized);
  return result.ok ? `${socket.getProtocol()} ${result.spiffeId.serviceAccount}` : result.reason;
}

async function listen(t: TestContext, workload: WorkloadCertificate): Promise<{ port: number; peers: string[] }> {
  const peers: string[] = [];
  const server = tls.createServer({ ...secure(workload), requestCert: true, rejectUnauthorized: true }, (socket) => {
    socket.on("error", () => {});
    peers.push(peerOf(socket, workload, "client"));
    socket.end("hello\n");
  });
  server.listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, peers };
}

/** The server's identity as the client sees it, and what came over the connection, or why nothing came. */
async function call(port: number, workload: WorkloadCertificate): Promise<string> {
  const socket = tls.connect({
    ...secure(workload),
    port,
    host: "127.0.0.1",
    // Workloads have no host names: who the server is, is told by its SPIFFE id.
    checkServerIdentity: () => undefined,
  });
  let text = "";
  let server = "";
  socket.setEncoding("utf8").on("data", (part: string) => (text += part));
  socket.once("secureConnect", () => (server = peerOf(socket, workload, "server")));
  socket.once("error", (error: NodeJS.ErrnoException) => (text = error.code ?? error.message));
  const closed = Promise.withResolvers<void>();
  socket.once("close", () => closed.resolve());
  await closed.promise;
  return `${server}: ${text.trim()}`;
}

for (const algorithm of ["P-256", "RSA-2048", "Ed25519"] as const) {
  test(`two workloads with ${algorithm} recognise each other over mutual TLS 1.3`, async (t) => {
    const authority = await currentAuthority(algorithm);
    const { port, peers } = await listen(t, await issue(authority, payments, algorithm));
    assert.equal(await call(port, await issue(authority, catalog, algorithm)), "TLSv1.3 payments: hello");
    assert.deepEqual(peers, ["TLSv1.3 catalog"]);
  });
}

test("a workload of a foreign authority gets no handshake", async (t) => {
  const [authority, foreign] = [await currentAuthority(), await currentAuthority()];
  const { port, peers } = await listen(t, await issue(authority));
  assert.equal(await call(port, await issue(foreign)), ": UNABLE_TO_GET_ISSUER_CERT_LOCALLY");
  // One that trusts the server, but is not trusted by it: in TLS 1.3 it hears of that only after its own handshake.
  const half = { ...(await issue(foreign)), rootsPem: authority.trustBundlePem, roots: authority.roots };
  assert.doesNotMatch(await call(port, half), /hello/);
  assert.deepEqual(peers, []);
});

test("through a change of roots old and new workloads recognise each other in every phase", async (t) => {
  let atMs = Date.now();
  const start = await createAuthority({ trustDomain: "cluster.local", nowMs: atMs });
  const next = await createAuthority({ trustDomain: "cluster.local", nowMs: atMs });
  const authority = new CertificateAuthority({
    trustDomain: "cluster.local",
    state: { phase: "steady", signing: start },
    now: () => atMs,
  });
  const workloads = [];
  // Whoever joins in one phase must get on with those of the phase before.
  for (const phase of ["introducing", "introducing, later", "retiring", "retiring, later"]) {
    if (phase === "introducing") await authority.rotateTo(next, { introduceMs: 1000, overlapMs: 5000 });
    if (phase === "retiring") {
      atMs += 1000;
      assert.equal(await authority.advance(), true);
    }
    workloads.push(await issue(authority));
  }
  const signers = new Set(workloads.map(({ leaf }) => leaf.issuerDer.toString("hex")));
  assert.equal(signers.size, 2);
  for (const server of workloads) {
    const { port } = await listen(t, server);
    for (const client of workloads) assert.equal(await call(port, client), "TLSv1.3 catalog: hello");
  }
  atMs += 5000;
  await authority.advance();
  const last = await issue(authority);
  const { port } = await listen(t, last);
  assert.equal(await call(port, workloads[2]!), "TLSv1.3 catalog: hello");
  assert.doesNotMatch(await call(port, workloads[0]!), /hello/);
});

test("OpenSSL's client is served with a workload's files, and refused without", async (t) => {
  const ssl = await openssl(t);
  const authority = await currentAuthority();
  const { port, peers } = await listen(t, await issue(authority, payments));
  const client = await issue(authority);
  const connect = [
    "s_client",
    "-connect",
    `127.0.0.1:${port}`,
    "-tls1_3",
    "-verify_return_error",
    "-ign_eof",
    "-CAfile",
    await ssl.file("roots.pem", client.rootsPem),
  ];
  const chain = await ssl.file("chain.pem", client.chainPem);
  const own = ["-cert", chain, "-cert_chain", chain, "-key", await ssl.file("key.pem", client.keyPem)];
  const output = await ssl.run(...connect, ...own);
  assert.match(output, /Verify return code: 0 \(ok\)/);
  assert.match(output, /New, TLSv1\.3/);
  assert.match(output, /hello\n/);
  assert.deepEqual(peers, ["TLSv1.3 catalog"]);
  await assert.rejects(ssl.run(...connect), /alert certificate required/);
});

test("OpenSSL's server takes a workload's files and asks for them", async (t) => {
  const ssl = await openssl(t);
  const authority = await currentAuthority();
  const server = await issue(authority, payments);
  const chain = await ssl.file("chain.pem", server.chainPem);
  const child = spawn(
    await debianTool("openssl"),
    [
      "s_server",
      "-accept",
      "127.0.0.1:0",
      "-tls1_3",
      "-www",
      "-Verify",
      "3",
      "-verify_return_error",
      "-cert",
      chain,
      "-cert_chain",
      chain,
      "-key",
      await ssl.file("key.pem", server.keyPem),
      "-CAfile",
      await ssl.file("roots.pem", server.rootsPem),
    ],
    { stdio: ["pipe", "pipe", "pipe"], timeout: 60_000 },
  );
  t.after(() => child.kill());
  let printed = "";
  child.stdout.setEncoding("utf8");
  for await (const part of child.stdout as AsyncIterable<string>) {
    printed += part;
    if (/ACCEPT 127\.0\.0\.1:\d+/.test(printed)) break;
  }
  const port = Number(/ACCEPT 127\.0\.0\.1:(\d+)/.exec(printed)![1]);
  const client = await issue(authority);
  const socket = tls.connect({ ...secure(client), port, host: "127.0.0.1", checkServerIdentity: () => undefined });
  await once(socket, "secureConnect");
  assert.equal(peerOf(socket, client, "server"), "TLSv1.3 payments");
  socket.write("GET / HTTP/1.0\r\n\r\n");
  let page = "";
  socket.setEncoding("utf8").on("data", (part: string) => (page += part));
  await once(socket, "end");
  socket.destroy();
  assert.match(page, /URI:spiffe:\/\/cluster\.local\/ns\/shop\/sa\/catalog/);
});

test("a server's identity holds against the certificate as it is read here", async () => {
  const authority = await currentAuthority();
  const { leaf } = await issue(authority);
  const parsed = parseCertificate(leaf.der);
  assert.ok(parsed.ok && parsed.certificate.pem === leaf.pem);
});
