// ADS client and server with each other over real gRPC, on a TCP port and on a Unix socket.
import assert from "node:assert/strict";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { waitFor } from "../../../tests/tools/processes.ts";
import type { AdsClientHandlers, AdsClientState, AdsResponse, Verdict } from "./ads-client-api.ts";
import { connectAds } from "./ads-client.ts";
import type {
  AdsAddress,
  AdsConnection,
  AdsServerHandlers,
  AdsServerLimits,
  SyncState,
  TypeStatus,
} from "./ads-server-api.ts";
import { serveAds } from "./ads-server.ts";
import { type ByteStream, openByteStream } from "./byte-stream.ts";
import { type EncodedResource, contentVersion, encodeResource } from "./encoded-resource.ts";
import { ClusterSchema, Cluster_DiscoveryType } from "./generated/envoy/config/cluster/v3/cluster_pb.ts";
import { NodeSchema } from "./generated/envoy/config/core/v3/base_pb.ts";
import { ClusterLoadAssignmentSchema } from "./generated/envoy/config/endpoint/v3/endpoint_pb.ts";
import { ListenerSchema } from "./generated/envoy/config/listener/v3/listener_pb.ts";
import { RouteConfigurationSchema } from "./generated/envoy/config/route/v3/route_pb.ts";
import { SecretSchema } from "./generated/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts";
import type { ResourceTypeName } from "./resource-types.ts";

function cluster(name: string, altStatName = ""): EncodedResource {
  return encodeResource(
    ClusterSchema,
    create(ClusterSchema, {
      name,
      altStatName,
      clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.EDS },
      edsClusterConfig: {},
    }),
  );
}

const endpoints = (clusterName: string): EncodedResource =>
  encodeResource(ClusterLoadAssignmentSchema, create(ClusterLoadAssignmentSchema, { clusterName }));

const listener = (name: string, statPrefix = ""): EncodedResource =>
  encodeResource(ListenerSchema, create(ListenerSchema, { name, statPrefix }));

const byName = (...resources: EncodedResource[]): ReadonlyMap<string, EncodedResource> =>
  new Map(resources.map((resource) => [resource.name, resource]));

/** A control plane of the simplest kind: each type has one declaration, for all proxies. */
class TestControlPlane implements AdsServerHandlers {
  readonly declared = new Map<ResourceTypeName, ReadonlyMap<string, EncodedResource>>();
  readonly events: string[] = [];
  connection: AdsConnection | undefined;

  declare(type: ResourceTypeName, ...resources: EncodedResource[]): void {
    this.declared.set(type, byName(...resources));
    this.connection?.set(type, byName(...resources));
  }

  state(type: ResourceTypeName): SyncState | undefined {
    return this.connection?.status().get(type)?.state;
  }

  onConnect(connection: AdsConnection): void {
    this.connection = connection;
    this.events.push(`connect ${connection.node.id}`);
  }

  onSubscribe(connection: AdsConnection, { type, names }: Parameters<AdsServerHandlers["onSubscribe"]>[1]): void {
    this.events.push(`subscribe ${type} ${names === "*" ? "*" : [...names].join(" ")}`);
    const resources = this.declared.get(type);
    if (resources !== undefined) connection.set(type, resources);
  }

  onNack(
    _connection: AdsConnection,
    { type, offenders, message }: Parameters<Required<AdsServerHandlers>["onNack"]>[1],
  ) {
    this.events.push(`nack ${type} ${offenders.map(({ name }) => name).join(" ")}: ${message}`);
  }

  onDisconnect(): void {
    this.connection = undefined;
    this.events.push("disconnect");
  }
}

async function temporaryFolder(context: TestContext): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-xds-"));
  context.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function startServer(
  context: TestContext,
  handlers: AdsServerHandlers,
  address: AdsAddress = { host: "127.0.0.1", port: 0 },
  limits: Partial<AdsServerLimits> = {},
) {
  const server = await serveAds({ address, handlers, limits });
  context.after(() => server.close());
  return server;
}

const targetOf = (address: AdsAddress): string =>
  "path" in address ? `unix:${address.path}` : `http://${address.host}:${address.port}`;

function startClient(
  context: TestContext,
  address: AdsAddress,
  onResponse: (response: AdsResponse) => Verdict | Promise<Verdict>,
  others: Omit<AdsClientHandlers, "onResponse"> = {},
) {
  const handlers = { onResponse, ...others };
  const client = connectAds({
    target: targetOf(address),
    node: create(NodeSchema, { id: "sidecar~127.0.0.1~a.b~b.svc.cluster.local" }),
    handlers,
    backOff: { baseMs: 20, maxMs: 100 },
  });
  context.after(() => client.close());
  return client;
}

for (const kind of ["a TCP port", "a Unix socket"]) {
  test(`clusters, endpoints and listeners arrive in order over ${kind}, and all are acknowledged`, async (context) => {
    const controlPlane = new TestControlPlane();
    controlPlane.declare("CDS", cluster("a"), cluster("b"));
    controlPlane.declare("EDS", endpoints("a"), endpoints("b"), endpoints("unasked"));
    controlPlane.declare("LDS", listener("l"));
    const address =
      kind === "a TCP port"
        ? { host: "127.0.0.1", port: 0 }
        : { path: path.join(await temporaryFolder(context), "xds.sock") };
    const server = await startServer(context, controlPlane, address);
    if ("path" in server.address) assert.equal((await stat(server.address.path)).mode & 0o777, 0o600);
    const received: string[] = [];
    const client = startClient(context, server.address, (response) => {
      received.push(`${response.type} ${[...response.resources.keys()].join(" ")}`);
      if (response.type === "CDS") client.subscribe("EDS", new Set(response.resources.keys()));
      return [];
    });
    client.subscribe("LDS", "*");
    client.subscribe("CDS", "*");
    await waitFor(() => controlPlane.state("LDS") === "SYNCED", { what: "the listener to be acknowledged" });
    assert.deepEqual(received, ["CDS a b", "EDS a", "EDS b", "LDS l"]);
    assert.equal(controlPlane.state("CDS"), "SYNCED");
    assert.equal(controlPlane.state("EDS"), "SYNCED");
    assert.equal(controlPlane.state("RDS"), "NOT SENT");
  });
}

test("a refused listener is an error with its reason, and the others are in effect", async (context) => {
  const controlPlane = new TestControlPlane();
  controlPlane.declare("LDS", listener("good"));
  const server = await startServer(context, controlPlane);
  const applied = new Map<string, string>();
  const client = startClient(context, server.address, (response) => {
    assert.equal(response.type, "LDS");
    const errors = [...response.resources.keys()].filter((name) => name === "bad");
    for (const name of response.removed) applied.delete(name);
    for (const [name, version] of response.versions) if (name !== "bad") applied.set(name, version);
    return errors.map((name) => ({ name, message: "cannot bind: address already in use" }));
  });
  client.subscribe("LDS", "*");
  await waitFor(() => controlPlane.state("LDS") === "SYNCED", { what: "the first push" });
  controlPlane.declare("LDS", listener("good"), listener("bad"), listener("third"));
  await waitFor(() => controlPlane.state("LDS") === "ERROR" && applied.has("third"), { what: "the refusal" });
  const status = (): TypeStatus | undefined => controlPlane.connection?.status().get("LDS");
  await waitFor(() => status()?.ackedNonce === status()?.sentNonce, { what: "the rest's ACK" });
  assert.deepEqual(
    controlPlane.connection
      ?.status()
      .get("LDS")
      ?.rejected.map(({ name, message }) => `${name}: ${message}`),
    ["bad: Error adding/updating listener(s) bad: cannot bind: address already in use"],
  );
  controlPlane.declare("LDS", listener("good", "changed"), listener("other"));
  await waitFor(() => controlPlane.state("LDS") === "SYNCED", { what: "the next push" });
  assert.deepEqual([...applied.keys()].sort(), ["good", "other"]);
});

test("a resource that cannot be decoded is refused by the client itself", async (context) => {
  const controlPlane = new TestControlPlane();
  const good = cluster("good");
  const broken = {
    ...cluster("broken"),
    any: { ...good.any, value: Uint8Array.of(10, 6, ...Buffer.from("broken"), 0xff) },
  };
  controlPlane.declare("CDS", good, broken);
  const server = await startServer(context, controlPlane);
  const names: string[][] = [];
  const client = startClient(context, server.address, (response) => {
    names.push([...response.resources.keys()]);
    return [];
  });
  client.subscribe("CDS", "*");
  await waitFor(() => controlPlane.events.some((event) => event.startsWith("nack CDS broken:")), { what: "the NACK" });
  assert.deepEqual(names[0], ["good"]);
});

test("what is received of a resource does not keep the rest of its response", async (context) => {
  const controlPlane = new TestControlPlane();
  const secret = (name: string, bytes: number): EncodedResource =>
    encodeResource(
      SecretSchema,
      create(SecretSchema, {
        name,
        type: {
          case: "genericSecret",
          value: { secret: { specifier: { case: "inlineBytes", value: Buffer.alloc(bytes) } } },
        },
      }),
    );
  const routes = (name: string, hosts: number): EncodedResource =>
    encodeResource(
      RouteConfigurationSchema,
      create(RouteConfigurationSchema, {
        name,
        virtualHosts: Array.from({ length: hosts }, (_, index) => ({ name: `host-${index}` })),
      }),
    );
  controlPlane.declare("SDS", secret("small", 8), secret("large", 100_000));
  controlPlane.declare("RDS", routes("small", 1), routes("large", 1000));
  const server = await startServer(context, controlPlane);
  const kept = new Map<string, number>();
  const client = startClient(context, server.address, ({ type, resources }) => {
    const small = resources.get("small");
    if (type === "SDS" && small !== undefined && "type" in small && small.type.case === "genericSecret") {
      const source = small.type.value.secret?.specifier;
      if (source?.case === "inlineBytes") kept.set(type, source.value.buffer.byteLength);
    }
    if (small instanceof Uint8Array) kept.set(type, small.buffer.byteLength);
    return [];
  });
  client.subscribe("SDS", new Set(["small", "large"]));
  client.subscribe("RDS", new Set(["small", "large"]));
  await waitFor(() => kept.size === 2, { what: "both responses" });
  for (const [type, bytes] of kept) assert.ok(bytes < 100, `${type}: ${bytes}`);
});

test("a version that the client has already is neither decoded nor handed on", async (context) => {
  const controlPlane = new TestControlPlane();
  const known = cluster("known");
  const broken = { ...known, any: { ...known.any, value: Uint8Array.of(10, 5, ...Buffer.from("known"), 0xff) } };
  controlPlane.declare("CDS", broken, cluster("new"));
  const server = await startServer(context, controlPlane);
  const names: string[][] = [];
  const client = startClient(
    context,
    server.address,
    ({ resources, removed }) => {
      names.push([...resources.keys()], [...removed]);
      return [];
    },
    {
      holds: (type, name, version) =>
        type === "CDS" && name === "known" && version === contentVersion(broken.any.value),
    },
  );
  client.subscribe("CDS", "*");
  await waitFor(() => controlPlane.state("CDS") === "SYNCED", { what: "the ACK" });
  assert.deepEqual(names, [["new"], []]);
});

test("a verdict that fails refuses the response with the reason", async (context) => {
  const controlPlane = new TestControlPlane();
  controlPlane.declare("CDS", cluster("a"));
  const server = await startServer(context, controlPlane);
  const client = startClient(context, server.address, () => Promise.reject(new Error("out of luck")));
  client.subscribe("CDS", "*");
  await waitFor(() => controlPlane.events.some((event) => event.endsWith("a: out of luck")), { what: "the NACK" });
});

test("the client comes back to a control plane that restarts, and says what it has", async (context) => {
  const folder = await temporaryFolder(context);
  const address = { path: path.join(folder, "xds.sock") };
  const first = new TestControlPlane();
  first.declare("CDS", cluster("a"));
  const server = await serveAds({ address, handlers: first });
  const states: AdsClientState["kind"][] = [];
  const removed: string[] = [];
  const client = startClient(
    context,
    address,
    (response) => {
      removed.push(...response.removed);
      return [];
    },
    { onState: (state) => void states.push(state.kind) },
  );
  client.subscribe("CDS", "*");
  await waitFor(() => first.state("CDS") === "SYNCED", { what: "the first control plane" });
  await server.close();
  await waitFor(() => states.includes("waiting"), { what: "the client to notice" });
  const second = new TestControlPlane();
  second.declare("CDS", cluster("b"));
  await startServer(context, second, address);
  await waitFor(() => second.state("CDS") === "SYNCED", { what: "the second control plane" });
  assert.deepEqual(removed, ["a"]);
});

test("a client that starts before its control plane waits for it", async (context) => {
  const address = { path: path.join(await temporaryFolder(context), "xds.sock") };
  const states: AdsClientState["kind"][] = [];
  const client = startClient(context, address, () => [], { onState: (state) => void states.push(state.kind) });
  client.subscribe("CDS", "*");
  await waitFor(() => states.filter((state) => state === "waiting").length >= 2, { what: "two failures" });
  const controlPlane = new TestControlPlane();
  controlPlane.declare("CDS", cluster("a"));
  await startServer(context, controlPlane, address);
  await waitFor(() => controlPlane.state("CDS") === "SYNCED", { what: "the control plane" });
});

test("calls of one turn are one push", async (context) => {
  const controlPlane = new TestControlPlane();
  const sent: string[] = [];
  const handlers: AdsServerHandlers = {
    onConnect: (connection) => controlPlane.onConnect(connection),
    onSubscribe: () => undefined,
    onSent: (_connection, { type, resources }) => void sent.push(`${type} ${resources}`),
    onDisconnect: () => undefined,
  };
  const server = await startServer(context, handlers);
  const client = startClient(context, server.address, () => []);
  client.subscribe("CDS", "*");
  client.subscribe("LDS", "*");
  const connection = await waitFor(() => controlPlane.connection, { what: "the client" });
  await waitFor(() => connection.status().get("LDS")?.subscribed, { what: "the subscriptions" });
  connection.set("LDS", byName(listener("l")));
  connection.set("CDS", byName(cluster("a")));
  connection.set("CDS", byName(cluster("a"), cluster("b")));
  await waitFor(() => connection.status().get("LDS")?.state === "SYNCED", { what: "the push" });
  assert.deepEqual(sent, ["CDS 2", "LDS 1"]);

  const states = (): (SyncState | undefined)[] =>
    (["CDS", "LDS"] as const).map((type) => connection.status().get(type)?.state);
  connection.set("CDS", byName(cluster("a"), cluster("b")));
  connection.set("LDS", byName(listener("l", "changed")));
  assert.deepEqual(states(), ["SYNCED", "STALE"], "a change counts in the same turn, an equal declaration does not");
  assert.equal(sent.length, 2, "it is sent at the end of the turn");
  await waitFor(() => states()[1] === "SYNCED", { what: "the change" });
});

test("a handler that throws while a push is sent ends its own stream alone", async (context) => {
  const controlPlane = new TestControlPlane();
  const reasons: string[] = [];
  let internalErrors = 0;
  const server = await startServer(context, {
    onConnect: (connection) => controlPlane.onConnect(connection),
    onSubscribe: () => undefined,
    onSent: () => {
      throw new Error("no room for metrics");
    },
    onInternalError: () => void (internalErrors += 1),
    onDisconnect: (_connection, reason) => void reasons.push(reason),
  });
  const client = startClient(context, server.address, () => []);
  client.subscribe("CDS", "*");
  const connection = await waitFor(() => controlPlane.connection, { what: "the client" });
  await waitFor(() => connection.status().get("CDS")?.subscribed, { what: "the subscription" });
  connection.set("CDS", byName(cluster("a")));
  await waitFor(() => reasons.length > 0, { what: "the end of the stream" });
  assert.match(reasons[0]!, /^Error: no room for metrics\n/);
  assert.equal(internalErrors, 1);
});

test("a handler that throws refuses its stream, and tells the client nothing of why", async (context) => {
  const handlers: AdsServerHandlers = {
    onConnect: (connection) => {
      if (connection.node.id === "sidecar~127.0.0.1~a.b~b.svc.cluster.local") throw new Error("secret detail");
    },
    onSubscribe: () => undefined,
    onDisconnect: (_connection, reason) => void reasons.push(reason),
  };
  const reasons: string[] = [];
  const server = await startServer(context, handlers);
  const failures: string[] = [];
  const throwing = startClient(context, server.address, () => [], {
    onState: (state) => {
      if (state.kind === "waiting") failures.push(state.reason);
    },
  });
  throwing.subscribe("CDS", "*");
  await waitFor(() => failures.includes("13 INTERNAL: the control plane failed"), { what: "the INTERNAL end" });
  assert.match(reasons[0]!, /^Error: secret detail\n/);
});

test("one stream too many and a stream without a node are turned away", async (context) => {
  // A server of its own: an earlier client's connection that is not closed yet would count.
  const server = await startServer(context, new TestControlPlane(), undefined, { maxStreams: 1 });
  const ends: string[] = [];
  let opened = 0;
  const open = (): ByteStream => {
    const stream = openByteStream(targetOf(server.address), {
      onOpen: () => void opened++,
      onMessage: () => undefined,
      onEnd: (reason) => void ends.push(reason),
    });
    context.after(() => stream.close());
    return stream;
  };
  const streams = [open(), open()];
  await waitFor(() => opened === 2, { what: "two streams", details: () => ends.join("\n") });
  for (const stream of streams) stream.write(Uint8Array.of());
  await waitFor(() => ends.length === 2, { what: "both to be turned away", details: () => ends.join("\n") });
  assert.deepEqual(ends.sort(), [
    "3 INVALID_ARGUMENT: the first request carries no node id",
    "8 RESOURCE_EXHAUSTED: more than 1 streams",
  ]);
});

test("an address in use is an error of serveAds", async (context) => {
  const server = await startServer(context, new TestControlPlane());
  await assert.rejects(serveAds({ address: server.address, handlers: new TestControlPlane() }));
});
