// The relay's stream to a control plane with TLS: it waits for a certificate, shows the newest, and says why it was
// turned away.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type CertificateAuthority, checkWorkloadCertificate, type WorkloadCertificate } from "@tulle/identity";
import {
  type ByteStream,
  type ByteStreamLimits,
  defaultByteStreamLimits,
  encodeRequest,
  resourceType,
} from "@tulle/xds";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { issueTo, newAuthority, testAuthority } from "../testing/test-authority.ts";
import { TestControlPlane } from "../testing/test-control-plane.ts";
import { openUpstream, type RelayIdentity } from "./open-upstream.ts";

class TestIdentity implements RelayIdentity {
  current: WorkloadCertificate | undefined;
  readonly #listeners = new Set<(certificate: WorkloadCertificate) => void>();

  follow(listener: (certificate: WorkloadCertificate) => void): () => void {
    this.#listeners.add(listener);
    if (this.current !== undefined) listener(this.current);
    return () => void this.#listeners.delete(listener);
  }

  /** A certificate of `issuer` that trusts the roots of `trusted`. */
  async take(issuer: CertificateAuthority, trusted = issuer): Promise<void> {
    const parts = { ...(await issueTo(issuer)), rootsPem: issuer.trustBundlePem, obtainedAtMs: Date.now() };
    const checked = checkWorkloadCertificate(parts, Date.now());
    assert.ok(checked.ok);
    this.current = { ...checked.certificate, rootsPem: trusted.trustBundlePem, roots: trusted.roots };
    for (const listener of this.#listeners) listener(this.current);
  }
}

function openStream(url: string, identity: RelayIdentity, limits?: ByteStreamLimits) {
  const events: string[] = [];
  const on = {
    onOpen: () => {
      events.push("open");
      const request = {
        type: resourceType("CDS"),
        names: [],
        versionInfo: "",
        nonce: "",
        error: undefined,
        first: true,
      };
      stream.write(encodeRequest(request, create(NodeSchema, { id: "sidecar~127.0.0.1~web-1.shop~shop.svc" })));
    },
    onMessage: () => events.push("message"),
    onEnd: (reason: string) => events.push(reason),
  };
  const stream: ByteStream = openUpstream(url, identity, "sotw", on, limits);
  return { stream, events };
}

test("a stream waits for the first certificate, and then shows it", async (context) => {
  const mesh = await testAuthority(context);
  const controlPlane = await TestControlPlane.start(mesh);
  const identity = new TestIdentity();
  const { stream, events } = openStream(controlPlane.url, identity);
  mesh.cleanUp.defer(() => stream.close());
  assert.deepEqual(events, []);
  await identity.take(mesh.authority);
  const ads = "ads of spiffe://cluster.local/ns/shop/sa/web";
  await waitFor(() => controlPlane.story.includes(ads), { what: ads, details: () => events.join("\n") });
  // A renewed certificate is for the next connection; this one goes on.
  await identity.take(mesh.authority);
  assert.deepEqual(events, ["open"]);
  assert.deepEqual(controlPlane.story, [ads]);
});

test("a stream to a control plane whose machine is gone ends, so that another one is asked", async (context) => {
  const mesh = await testAuthority(context);
  const controlPlane = await TestControlPlane.start(mesh);
  const { hostname, port } = new URL(controlPlane.url);
  const ends: Socket[] = [];
  // What leads there: it says nothing any more, as a machine without power.
  const way = createServer((near) => {
    const far = connect({ host: hostname, port: Number(port) });
    ends.push(near, far);
    near.pipe(far).pipe(near);
    for (const each of [near, far]) each.on("error", () => undefined);
  }).listen(0, "127.0.0.1");
  await once(way, "listening");
  mesh.cleanUp.defer(() => {
    way.close();
    for (const each of ends) each.destroy();
  });
  const identity = new TestIdentity();
  const limits = { ...defaultByteStreamLimits, keepAliveIntervalMs: 200, keepAliveTimeoutMs: 200 };
  const url = `https://127.0.0.1:${(way.address() as AddressInfo).port}`;
  const { stream, events } = openStream(url, identity, limits);
  mesh.cleanUp.defer(() => stream.close());
  await identity.take(mesh.authority);
  await waitFor(() => controlPlane.story.length > 0, { what: "the stream to be open" });
  for (const each of ends) each.unpipe().pause();
  await waitFor(() => events.length === 2, { what: "the stream to end", details: () => events.join("\n") });
});

test("a stream that was closed while it waited opens no more", async (context) => {
  const mesh = await testAuthority(context);
  const controlPlane = await TestControlPlane.start(mesh);
  const identity = new TestIdentity();
  const { stream } = openStream(controlPlane.url, identity);
  stream.close();
  await identity.take(mesh.authority);
  const second = openStream(controlPlane.url, identity);
  mesh.cleanUp.defer(() => second.stream.close());
  await waitFor(() => controlPlane.story.length > 0, { what: "the second stream" });
  assert.equal(controlPlane.story.length, 1);
});

test("a certificate of another mesh ends the stream", async (context) => {
  const mesh = await testAuthority(context);
  const controlPlane = await TestControlPlane.start(mesh);
  const identity = new TestIdentity();
  await identity.take(await newAuthority(Date.now), mesh.authority);
  const { stream, events } = openStream(controlPlane.url, identity);
  mesh.cleanUp.defer(() => stream.close());
  await waitFor(() => events.some((event) => event.startsWith("cannot connect")), { what: "the refusal" });
  assert.match(controlPlane.story.join(), /refused: .*leads to no trusted root/);
});
