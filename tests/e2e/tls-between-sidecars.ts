// What passes between two sidecars, seen from outside: TLS 1.3 records and nothing that anybody could read. And who is
// let in.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import path from "node:path";
import { type CapturedConnection, PacketCapture } from "../tools/packet-capture.ts";
import { waitFor } from "../tools/processes.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";
import { negotiatedVersion, tlsRecords } from "../tools/tls-records.ts";
import type { MeshVariant } from "./mesh-variant.ts";
import { useRunningShop } from "./running-shop.ts";
import { type Answer, inParallel, type Pod, type ShopInstance } from "./shop-instance.ts";

const tls13 = 0x0304;
const handshakeRecord = 22;
/** Application data, and the change_cipher_spec that is there for old middleboxes (RFC 8446 appendix D.4). */
const encryptedTypes: ReadonlySet<number> = new Set([23, 20]);

/** Where the sidecar of a pod takes requests for its app. */
function inbound({ address, app }: Pod): string {
  return `${address}:${app!.port}`;
}

/** Connections of before are used again, and streams need no new ones: clusters that change make them anew. */
async function renewConnections(shop: ShopInstance): Promise<void> {
  const trafficPolicy = { connectionPool: { tcp: { connectTimeout: "9s" } } };
  const subsets = ["v1", "v2"].map((version) => ({ name: `version-${version}`, labels: { version } }));
  const file = path.join(temporaryFolder("tulle-wire-"), "rules.yaml");
  const rules = [
    { host: "catalog", trafficPolicy, subsets },
    { host: "webapp", trafficPolicy },
  ].map((spec) => ({
    apiVersion: "networking.tulle.io/v1",
    kind: "DestinationRule",
    metadata: { name: spec.host, namespace: "shop" },
    spec,
  }));
  await writeFile(file, rules.map((rule) => JSON.stringify(rule)).join("\n---\n"));
  await shop.mustTulle("apply", "-f", file);
  await shop.waitForSync();
}

function assertTls13Alone({ client, server, fromClient, fromServer }: CapturedConnection): void {
  const where = `${client} to ${server}`;
  assert.ok(fromClient !== undefined && fromServer !== undefined, `${where} was seen whole`);
  const [serverHello, ...fromTheServer] = tlsRecords(fromServer);
  const [clientHello, ...fromTheClient] = tlsRecords(fromClient);
  assert.ok(serverHello !== undefined && clientHello !== undefined, `${where} began`);
  assert.equal(negotiatedVersion(serverHello), tls13, `${where}: the version that the server chose`);
  assert.equal(clientHello.type, handshakeRecord, where);
  // All that follows the hellos is encrypted, the certificates too, and encrypted records say that they are application
  // data (RFC 8446 §5.2); an unencrypted alert would be a failed handshake.
  for (const { type } of [...fromTheServer, ...fromTheClient]) assert.ok(encryptedTypes.has(type), `${where}: ${type}`);
}

/** What is seen where packets of the sidecars pass. */
class WireTap implements AsyncDisposable {
  readonly #captures: readonly PacketCapture[];

  private constructor(captures: readonly PacketCapture[]) {
    this.#captures = captures;
  }

  /** On the machine's loopback interface, or on all of each pod with a network of its own. */
  static async start(shop: ShopInstance, sidecars: readonly Pod[], filter: string): Promise<WireTap> {
    const places = await Promise.all(sidecars.map((pod) => shop.reach.enter(pod)));
    const tapped = places.every((enter) => enter.length === 0)
      ? [{ networkInterface: "lo" }]
      : places.flatMap((enter) => ["lo", "eth0"].map((networkInterface) => ({ networkInterface, enter })));
    const captures: PacketCapture[] = [];
    for (const options of tapped) captures.push(await PacketCapture.start(filter, options));
    return new WireTap(captures);
  }

  async connections(): Promise<readonly CapturedConnection[]> {
    return (await Promise.all(this.#captures.map((capture) => capture.connections()))).flat();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const capture of this.#captures) await capture[Symbol.asyncDispose]();
  }
}

/** The tests of a suite. */
export function wireTests(variant: MeshVariant): void {
  let shop: ShopInstance;
  useRunningShop(variant, (running) => (shop = running));

  /** A request of a program outside of the mesh, straight to the sidecar. */
  const plainly = (pod: Pod): Promise<Answer> => shop.reach.fromOutside(pod, "/items/1");

  // A stock Envoy does not count so.
  if (variant.proxy === "tulle")
    test("requests between workloads of the shop count as encrypted, those of plain clients as not", async () => {
      const catalog = await shop.pod("catalog-v1");
      await plainly(catalog);
      await inParallel(20, 5, () => shop.get("/api/catalog"));
      const received = (await shop.requestCounts()).filter(({ labels }) => labels["reporter"] === "destination");
      const policies = Map.groupBy(
        received,
        ({ labels }) => `${labels["source_workload"]} to ${labels["destination_app"]}`,
      );
      const found = new Map(
        [...policies].map(([who, counts]) => [
          who,
          new Set(counts.map(({ labels }) => labels["connection_security_policy"])),
        ]),
      );
      assert.deepEqual(found.get("tulle-ingressgateway to webapp"), new Set(["mutual_tls"]));
      assert.deepEqual(found.get("webapp to catalog"), new Set(["mutual_tls"]));
      assert.deepEqual(found.get("unknown to catalog"), new Set(["none"]));
      const principals = new Set(
        received
          .filter(({ labels }) => labels["source_workload"] === "webapp")
          .map(({ labels }) => labels["source_principal"]),
      );
      assert.deepEqual(principals, new Set(["spiffe://cluster.local/ns/shop/sa/webapp"]));
    });

  test("between two sidecars there is TLS 1.3 alone", async () => {
    const pods = await shop.pods();
    const [webapp, catalogs, gateway] = [
      await shop.pod("webapp"),
      pods.filter(({ labels }) => labels["app"] === "catalog"),
      await shop.pod("tulle-ingressgateway"),
    ];
    const sidecars = [webapp, ...catalogs];
    const sides = sidecars.map(({ address, app }) => `(host ${address} and port ${app!.port})`);
    // The last hop to an app of the same pod is in the clear: it shows that the capture would see what it looks for.
    const own = `(host ${webapp.app!.address} and port ${webapp.app!.port})`;
    await using capture = await WireTap.start(shop, sidecars, `tcp and (${[...sides, own].join(" or ")})`);

    assert.equal((await plainly(catalogs[0]!)).status, 200, "PERMISSIVE serves a plain client");
    // Goes through all hops, since the front end hands it on.
    const secret = randomUUID();
    const ask = async (): Promise<void> => {
      const call = () => shop.get("/api/catalog", { baggage: `secret=${secret}` });
      const answers = await inParallel(60, 30, call);
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    };
    const meshed = async (): Promise<readonly CapturedConnection[]> => {
      const callers = new Set([gateway, webapp].map(({ address }) => address));
      // Whoever asks whether the app of a pod is ready comes from the pod's own address, and past the sidecars.
      const host = (place: string): string => place.split(":")[0]!;
      const seen = await capture.connections();
      return seen.filter(({ client, server }) => callers.has(host(client)) && host(client) !== host(server));
    };
    const toEachSidecar = async (): Promise<boolean> => {
      const seen = (await meshed()).filter(({ fromServer }) => (fromServer?.length ?? 0) > 0);
      const reached = new Set(seen.map(({ server }) => server));
      return sidecars.every((pod) => reached.has(inbound(pod)));
    };
    await renewConnections(shop);
    const asksAll = async (): Promise<boolean> => {
      await ask();
      return toEachSidecar();
    };
    await waitFor(asksAll, { what: "connections to each sidecar" });

    await shop.mustTulle("apply", "-f", path.join(shop.folder, "policies", "1-strict-mutual-tls.yaml"));
    await shop.waitForSync();
    for (const pod of sidecars) {
      // An Envoy may have acknowledged a listener that its worker is yet to hear of.
      const isRefused = (): Promise<boolean> =>
        plainly(pod).then(
          () => false,
          (error: Error) => /socket hang up|ECONNRESET/.test(error.message),
        );
      await waitFor(isRefused, { what: `STRICT to refuse a plain client of ${pod.name}` });
    }
    await ask();
    await waitFor(async () => (await capture.connections()).some(({ fromClient }) => fromClient?.includes(secret)), {
      what: "the secret on the last hop, where it may be read",
    });

    const between = (await meshed()).filter(
      ({ server, fromServer }) => sidecars.some((pod) => inbound(pod) === server) && (fromServer?.length ?? 0) > 0,
    );
    for (const connection of between) assertTls13Alone(connection);
    const readable = Buffer.concat(
      between.flatMap(({ fromClient, fromServer }) => [fromClient!, fromServer!]),
    ).toString("latin1");
    for (const text of [secret, "HTTP/1.1", "GET /", "PRI * HTTP/2", "Lighthouse", "spiffe://"]) {
      assert.ok(!readable.includes(text), `"${text}" in the clear`);
    }
  });
}
