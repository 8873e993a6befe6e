// The agent's identity with everything around it: a control plane over TLS on one side, a proxy's secret streams on the
// other.
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { stat } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { createAuthority } from "@tulle/identity";
import { type LogEntry, Logging } from "@tulle/telemetry";
import { connectAds } from "@tulle/xds";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type { Secret } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { type AgentSettings, parseSettings } from "../settings.ts";
import { type TestAuthority, testAuthority } from "../testing/test-authority.ts";
import { TestControlPlane } from "../testing/test-control-plane.ts";
import { startIdentity } from "./start-identity.ts";

const webId = "spiffe://cluster.local/ns/shop/sa/web";

function settingsFor(mesh: TestAuthority, controlPlane: string): AgentSettings {
  const parsed = parseSettings({
    POD_NAME: "web-1",
    POD_NAMESPACE: "shop",
    SERVICE_ACCOUNT: "web",
    INSTANCE_IP: "127.0.0.1",
    TULLE_XDS_ADDRESS: new URL(controlPlane).host,
    TULLE_STATE_DIR: mesh.folder,
    TULLE_CA_ROOT_FILE: mesh.rootsFile,
    TULLE_TOKEN_FILE: mesh.tokenFile,
  });
  assert.ok(parsed.ok);
  return parsed.settings;
}

async function start(mesh: TestAuthority, controlPlane: string) {
  const settings = settingsFor(mesh, controlPlane);
  const entries: LogEntry[] = [];
  const identity = await startIdentity({
    settings,
    identity: settings.identity!,
    socketPath: path.join(mesh.folder, "sds.sock"),
    stop: new AbortController().signal,
    logging: new Logging({ sink: (entry) => entries.push(entry), level: "debug" }),
  });
  mesh.cleanUp.use(identity);
  const log = (): string => entries.map(({ level, message }) => `${level} ${message}`).join("\n");
  return { ...identity, log };
}

/** A proxy's subscription to one secret. */
class SecretWatch {
  readonly seen: Secret[] = [];

  constructor(mesh: TestAuthority, socketPath: string, name: string) {
    const client = connectAds({
      target: `unix:${socketPath}`,
      service: "sds",
      node: create(NodeSchema, { id: "proxy" }),
      handlers: {
        onResponse: (response) => {
          if (response.type === "SDS") this.seen.push(...response.resources.values());
          return [];
        },
      },
    });
    mesh.cleanUp.defer(() => client.close());
    client.subscribe("SDS", new Set([name]));
  }

  async sees(count: number, details: () => string): Promise<Secret> {
    await waitFor(() => this.seen.length >= count, { what: `${count} secrets`, details });
    return this.seen.at(-1)!;
  }
}

function leafOf(secret: Secret): X509Certificate {
  const source = secret.type.case === "tlsCertificate" ? secret.type.value.certificateChain?.specifier : undefined;
  assert.ok(source?.case === "inlineBytes");
  return new X509Certificate(Buffer.from(source.value));
}

function rootsIn(secret: Secret): number {
  const source = secret.type.case === "validationContext" ? secret.type.value.trustedCa?.specifier : undefined;
  assert.ok(source?.case === "inlineBytes");
  return Buffer.from(source.value).toString().split("BEGIN CERTIFICATE").length - 1;
}

test("a token becomes a certificate, the proxy gets it, and renewals and new roots reach it on its open streams", async (context) => {
  // Renewed after five seconds.
  const mesh = await testAuthority(context, { ttlMs: 10_000 });
  const controlPlane = await TestControlPlane.start(mesh);
  const identity = await start(mesh, controlPlane.url);
  assert.equal((await stat(identity.socketPath)).mode & 0o777, 0o600);
  const certificates = new SecretWatch(mesh, identity.socketPath, "default");
  const roots = new SecretWatch(mesh, identity.socketPath, "ROOTCA");
  const first = leafOf(await certificates.sees(1, identity.log));
  assert.equal(first.subjectAltName, `URI:${webId}`);
  assert.equal(rootsIn(await roots.sees(1, identity.log)), 1);
  const second = leafOf(await certificates.sees(2, identity.log));
  assert.notEqual(second.serialNumber, first.serialNumber);

  await waitFor(() => controlPlane.story.includes(`sds of ${webId}`), {
    what: "the agent's own stream",
    details: identity.log,
  });
  const next = await createAuthority({ trustDomain: "cluster.local", nowMs: Date.now() });
  await mesh.authority.rotateTo(next, { introduceMs: 60_000, overlapMs: 60_000 });
  await controlPlane.rootsChanged();
  await waitFor(() => roots.seen.some((secret) => rootsIn(secret) === 2), {
    what: "both roots",
    details: identity.log,
  });
  assert.equal(controlPlane.story[0], "asked by token");
});

test("a proxy that asks before there is a certificate gets it when it comes", async (context) => {
  const mesh = await testAuthority(context);
  const controlPlane = await TestControlPlane.start(mesh);
  controlPlane.isSigning = false;
  const identity = await start(mesh, controlPlane.url);
  const certificates = new SecretWatch(mesh, identity.socketPath, "default");
  await waitFor(() => identity.log().includes("the authority refuses the workload's token: not believed"), {
    what: "the refusal to be told",
    details: identity.log,
  });
  assert.equal(certificates.seen.length, 0);
  controlPlane.isSigning = true;
  await certificates.sees(1, identity.log);
});

test("secrets that nobody has are told of", async (context) => {
  const mesh = await testAuthority(context);
  const controlPlane = await TestControlPlane.start(mesh);
  const identity = await start(mesh, controlPlane.url);
  const watch = new SecretWatch(mesh, identity.socketPath, "kubernetes://shop-cert");
  await waitFor(() => /secrets that the agent does not have: kubernetes:\/\/shop-cert/.test(identity.log()), {
    what: "the unknown name to be told of",
    details: identity.log,
  });
  assert.equal(watch.seen.length, 0);
});

const failures = [
  {
    name: "a control plane that is not there",
    prepare: async (_mesh: TestAuthority, controlPlane: TestControlPlane) => controlPlane.stop(),
    expected: /ECONNREFUSED.*nobody listens at https:\/\/127\.0\.0\.1:\d+: see whether the control plane runs/,
  },
  {
    name: "a control plane of another mesh",
    prepare: async (mesh: TestAuthority, controlPlane: TestControlPlane, other: TestAuthority) => {
      await controlPlane.stop();
      Object.assign(mesh, { authority: other.authority });
      await controlPlane.start();
    },
    expected: /does not lead to a root in .*root-cert\.pem: it belongs to another mesh/,
  },
];

for (const { name, prepare, expected } of failures) {
  test(`${name} is told of with what to do`, async (context) => {
    const mesh = await testAuthority(context);
    const controlPlane = await TestControlPlane.start(mesh);
    await prepare(mesh, controlPlane, await testAuthority(context));
    const identity = await start(mesh, controlPlane.url);
    await waitFor(() => expected.test(identity.log()), { what: String(expected), details: identity.log });
  });
}
