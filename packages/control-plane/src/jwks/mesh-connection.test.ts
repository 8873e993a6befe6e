// Keys of an issuer behind a sidecar that takes mutual TLS alone: fetched with the control plane's certificate, from
// nobody else.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { createServer, type TLSSocket } from "node:tls";
import {
  CertificateAuthority,
  createAuthority,
  createCsr,
  generateKey,
  privateKeyPem,
  type SpiffeId,
} from "@tulle/identity";
import { fetchJwks } from "./fetch-jwks.ts";
import type { MeshClient } from "./mesh-connection.ts";

const { publicKey } = generateKeyPairSync("ed25519");
const keySet = JSON.stringify({ keys: [publicKey.export({ format: "jwk" })] });
const issuer: SpiffeId = { trustDomain: "cluster.local", namespace: "auth", serviceAccount: "issuer" };
const controlPlane: SpiffeId = { trustDomain: "cluster.local", namespace: "tulle-system", serviceAccount: "tulled" };
const issuerId = "spiffe://cluster.local/ns/auth/sa/issuer";
const location = { url: "http://issuer.auth/keys", isDiscovery: false };

const signing = await createAuthority({ trustDomain: "cluster.local", nowMs: Date.now() });
const otherSigning = await createAuthority({ trustDomain: "cluster.local", nowMs: Date.now() });

async function identityOf(identity: SpiffeId, material = signing): Promise<MeshClient> {
  const { trustDomain } = identity;
  const authority = new CertificateAuthority({ trustDomain, state: { phase: "steady", signing: material } });
  const key = await generateKey("P-256");
  const signed = authority.signWorkload({ csrPem: createCsr({ key, spiffeId: identity }), identity });
  assert.ok(signed.ok);
  const rootsPem = signing.roots.map(({ pem }) => pem).join("");
  return { privateKeyPem: privateKeyPem(key), certChainPem: signed.chainPem, rootsPem, trustDomain };
}

interface Sidecar {
  readonly port: number;
  readonly sni: (string | false)[];
  readonly alpn: (string | false | null)[];
}

/** Answers HTTP over mutual TLS, and nothing else. */
async function startSidecar(context: TestContext, identity: MeshClient): Promise<Sidecar> {
  const sni: (string | false)[] = [];
  const alpn: (string | false | null)[] = [];
  const application = http.createServer((_request, response) => response.end(keySet));
  const server = createServer(
    {
      key: identity.privateKeyPem,
      cert: identity.certChainPem,
      ca: identity.rootsPem,
      requestCert: true,
      rejectUnauthorized: true,
      ALPNProtocols: ["h2", "http/1.1"],
    },
    (socket: TLSSocket) => {
      // Node.js has it, its types do not.
      sni.push((socket as { readonly servername?: string | false }).servername ?? false);
      alpn.push(socket.alpnProtocol);
      application.emit("connection", socket);
    },
  );
  server.on("tlsClientError", () => undefined);
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  context.after(() => {
    application.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, sni, alpn };
}

function access(port: number, client: MeshClient | undefined, identities: readonly string[] = [issuerId]) {
  const meshTls = { sni: "outbound_.80_._.issuer.auth.svc.cluster.local", identities };
  return {
    resolve: () => ({ address: "127.0.0.1", port, meshTls }),
    client: client === undefined ? undefined : () => client,
  };
}

test("an issuer under STRICT gives its keys to the control plane", async (context) => {
  const { port, sni, alpn } = await startSidecar(context, await identityOf(issuer));
  const client = await identityOf(controlPlane);
  const expected = { kty: "OKP", crv: "Ed25519", x: publicKey.export({ format: "jwk" })["x"] };
  for (const identities of [[issuerId], []]) {
    const found = await fetchJwks(location, 5000, access(port, client, identities));
    assert.ok("jwks" in found, JSON.stringify(found));
    assert.deepEqual((JSON.parse(found.jwks) as { readonly keys: unknown }).keys, [expected]);
  }
  assert.deepEqual(new Set(sni), new Set(["outbound_.80_._.issuer.auth.svc.cluster.local"]));
  assert.deepEqual(new Set(alpn), new Set(["http/1.1"]));
});

test("whoever is not the issuer is not believed", async (context) => {
  const client = await identityOf(controlPlane);
  const rows = [
    {
      name: "another workload",
      identity: await identityOf({ ...issuer, serviceAccount: "thief" }),
      expected:
        /spiffe:\/\/cluster\.local\/ns\/auth\/sa\/thief answers, expected spiffe:\/\/cluster\.local\/ns\/auth\/sa\/issuer$/,
    },
    {
      name: "another trust domain under the same root",
      identity: await identityOf({ ...issuer, trustDomain: "elsewhere" }),
      expected: /the peer is of the trust domain elsewhere, expected cluster\.local$/,
    },
    {
      name: "another authority",
      identity: await identityOf(issuer, otherSigning),
      expected: /self-signed certificate|unable to get/i,
    },
  ];
  for (const { name, identity, expected } of rows) {
    const { port } = await startSidecar(context, identity);
    const found = await fetchJwks(location, 5000, access(port, client));
    assert.ok("problem" in found, name);
    assert.match(found.problem, expected, name);
  }
});

test("a control plane without an authority asks in the clear", async (context) => {
  const server = http.createServer((_request, response) => response.end(keySet));
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  context.after(() => server.close());
  const found = await fetchJwks(location, 5000, access((server.address() as AddressInfo).port, undefined));
  assert.ok("jwks" in found);
});
