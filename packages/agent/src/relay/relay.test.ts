// The relay between a real ADS client and a real ADS server: a control plane that dies, comes back, or is not there at
// all.
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type LogEntry, Logging } from "@tulle/telemetry";
import {
  type AdsAddress,
  type AdsClient,
  type AdsConnection,
  type EncodedResource,
  type ResourceTypeName,
  connectAds,
  encodeResource,
  serveAds,
} from "@tulle/xds";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { resourceSchemas } from "@tulle/xds/resource-schemas";
import { freePort, waitFor } from "../../../../tests/tools/processes.ts";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { startRelay } from "./relay.ts";

const nodeId = "sidecar~127.0.0.1~a.b~b.svc.cluster.local";

const cluster = (name: string): EncodedResource =>
  encodeResource(resourceSchemas.CDS, create(resourceSchemas.CDS, { name }));
const routes = (name: string, host: string): EncodedResource =>
  encodeResource(
    resourceSchemas.RDS,
    create(resourceSchemas.RDS, { name, virtualHosts: [{ name: host, domains: [host] }] }),
  );

class ControlPlane {
  readonly declared = new Map<ResourceTypeName, ReadonlyMap<string, EncodedResource>>();
  connection: AdsConnection | undefined;
  #close: (() => Promise<void>) | undefined;

  declare(type: ResourceTypeName, ...resources: EncodedResource[]): void {
    this.declared.set(type, new Map(resources.map((resource) => [resource.name, resource])));
    this.connection?.set(type, this.declared.get(type)!);
  }

  async start(context: TestContext, address: AdsAddress): Promise<AdsAddress> {
    const handlers = {
      onConnect: (connection: AdsConnection): void => {
        this.connection = connection;
        for (const [type, resources] of this.declared) connection.set(type, resources);
      },
      onSubscribe: (): void => undefined,
      onDisconnect: (): void => void (this.connection = undefined),
    };
    const server = await serveAds({ address, handlers });
    this.#close = () => server.close();
    context.after(() => this.stop());
    return server.address;
  }

  async stop(): Promise<void> {
    await this.#close?.();
    this.#close = undefined;
  }

  isSynced(...types: readonly ResourceTypeName[]): boolean {
    const status = this.connection?.status();
    return types.every((type) => status?.get(type)?.state === "SYNCED");
  }
}

/** A proxy that takes everything, and asks for the routes `r` and `s`. */
class Proxy {
  readonly held = new Map<string, string>();
  readonly #client: AdsClient;

  constructor(context: TestContext, socketPath: string) {
    this.#client = connectAds({
      target: `unix:${socketPath}`,
      node: create(NodeSchema, { id: nodeId }),
      backOff: { baseMs: 20, maxMs: 100 },
      handlers: {
        onResponse: (response) => {
          for (const name of response.removed) this.held.delete(name);
          for (const [name, version] of response.versions) this.held.set(name, version);
          return [];
        },
      },
    });
    context.after(() => this.close());
    this.#client.subscribe("CDS", "*");
    this.#client.subscribe("RDS", new Set(["r", "s"]));
  }

  close(): void {
    this.#client.close();
  }

  holds(...resources: readonly EncodedResource[]): boolean {
    return (
      this.held.size === resources.length && resources.every(({ name, version }) => this.held.get(name) === version)
    );
  }
}

class Scene {
  readonly folder: string;
  readonly entries: LogEntry[] = [];
  readonly #context: TestContext;
  #relay: Awaited<ReturnType<typeof startRelay>> | undefined;

  constructor(context: TestContext) {
    this.#context = context;
    this.folder = temporaryFolder("tulle-relay-");
  }

  get socketPath(): string {
    return path.join(this.folder, "xds.sock");
  }

  get statePath(): string {
    return path.join(this.folder, "xds-state");
  }

  async startRelay(controlPlane: AdsAddress): Promise<void> {
    assert.ok("port" in controlPlane);
    this.#relay = await startRelay({
      socketPath: this.socketPath,
      statePath: this.statePath,
      controlPlane: `http://${controlPlane.host}:${controlPlane.port}`,
      nodeId,
      log: new Logging({ sink: (entry) => this.entries.push(entry) }).logger("relay"),
      backOff: { baseMs: 20, maxMs: 100 },
      graceMs: 60_000,
    });
    this.#context.after(() => this.stopRelay());
  }

  async stopRelay(): Promise<void> {
    const relay = this.#relay;
    this.#relay = undefined;
    await relay?.close();
  }
}

/** Not port zero: a control plane that comes back does so at its own port, which nobody may have taken meanwhile. */
const ownPort = async (): Promise<AdsAddress> => ({ host: "127.0.0.1", port: await freePort() });

test("a proxy that restarts without its control plane has the last change, and follows when it is back", async (context) => {
  const scene = new Scene(context);
  const first = new ControlPlane();
  first.declare("CDS", cluster("a"), cluster("b"));
  first.declare("RDS", routes("r", "one"), routes("s", "one"));
  const address = await first.start(context, await ownPort());
  await scene.startRelay(address);
  const proxy = new Proxy(context, scene.socketPath);
  await waitFor(() => first.isSynced("CDS", "RDS"), { what: "the first push" });

  const changed = [cluster("a"), cluster("c"), routes("r", "two"), routes("s", "one")] as const;
  first.declare("CDS", changed[0], changed[1]);
  first.declare("RDS", changed[2], changed[3]);
  await waitFor(() => first.isSynced("CDS", "RDS") && proxy.holds(...changed), { what: "the change" });
  await first.stop();
  proxy.close();
  await scene.stopRelay();

  await scene.startRelay(address);
  const restarted = new Proxy(context, scene.socketPath);
  await waitFor(() => restarted.holds(...changed), { what: "the saved state" });

  const second = new ControlPlane();
  second.declare("CDS", cluster("d"));
  second.declare("RDS", routes("r", "three"), routes("s", "one"));
  await second.start(context, address);
  await waitFor(() => second.isSynced("CDS", "RDS"), { what: "the switch-over" });
  assert.ok(restarted.holds(cluster("d"), routes("r", "three"), routes("s", "one")));
});

test("a control plane that dies and comes back: the proxy's stream to the agent stays", async (context) => {
  const scene = new Scene(context);
  const first = new ControlPlane();
  first.declare("CDS", cluster("a"));
  first.declare("RDS");
  const address = await first.start(context, await ownPort());
  await scene.startRelay(address);
  const proxy = new Proxy(context, scene.socketPath);
  await waitFor(() => first.isSynced("CDS"), { what: "the first push" });
  await first.stop();
  await waitFor(() => scene.entries.some(({ message }) => message.startsWith("no control plane")), {
    what: "the loss",
  });
  assert.ok(proxy.holds(cluster("a")));
  const second = new ControlPlane();
  second.declare("CDS", cluster("a"), cluster("b"));
  await second.start(context, address);
  await waitFor(() => second.isSynced("CDS"), { what: "the second control plane" });
  assert.ok(proxy.holds(cluster("a"), cluster("b")));
});

for (const [name, damage] of [
  ["cut short", (bytes: string) => bytes.slice(0, -5)],
  ["edited", (bytes: string) => bytes.replace("versionInfo", "versionInfa")],
] as const) {
  test(`a saved state that was ${name} is set aside, told, and does not stop the start`, async (context) => {
    const scene = new Scene(context);
    const controlPlane = new ControlPlane();
    controlPlane.declare("CDS", cluster("a"));
    const address = await controlPlane.start(context, await ownPort());
    await scene.startRelay(address);
    const proxy = new Proxy(context, scene.socketPath);
    await waitFor(() => controlPlane.isSynced("CDS"), { what: "the first push" });
    proxy.close();
    await scene.stopRelay();
    writeFileSync(scene.statePath, damage(readFileSync(scene.statePath, "latin1")), "latin1");

    await scene.startRelay(address);
    assert.ok(
      scene.entries.some(({ level, message }) => level === "warning" && /saved state is not used/.test(message)),
    );
    assert.ok(existsSync(`${scene.statePath}.refused`));
    const restarted = new Proxy(context, scene.socketPath);
    await waitFor(() => restarted.holds(cluster("a")), { what: "the control plane's own answer" });
  });
}
