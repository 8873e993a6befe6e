/** The client and its watch against a small server that speaks the API of api.ts from a store in memory. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text as readBody } from "node:stream/consumers";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { ApiClient } from "./api-client.ts";
import { endpoints, parseResourcePath } from "./api.ts";
import type { ApplyRequest, WatchEvent } from "./answers.ts";
import { pathOf } from "./endpoint.ts";
import { isKind } from "../kinds/kinds.ts";
import type { Kind } from "../kinds/kinds.ts";
import { loadText } from "../load/load.ts";
import { MemoryStore } from "../store/memory-store.ts";
import { parseResource } from "../load/parse-resource.ts";
import type { MeshResource } from "../kinds/resource.ts";
import type { StoreChange } from "../store/store.ts";

/** A control plane that may forget its history and cut its watches. */
class TestControlPlane {
  store: MemoryStore;
  readonly requests: string[] = [];
  readonly #server: Server;
  readonly #watches = new Set<ServerResponse>();

  constructor(store: MemoryStore) {
    this.store = store;
    this.#server = createServer((request, response) => {
      this.requests.push(`${request.method} ${request.url}`);
      void this.#answer(request, response);
    });
  }

  async listen(t: TestContext): Promise<{ readonly url: string }> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    t.after(() => {
      this.cutWatches();
      this.#server.close();
    });
    return { url: `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}` };
  }

  cutWatches(): void {
    for (const response of this.#watches) response.destroy();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "", "http://localhost");
    const send = (status: number, body: unknown): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    const fail = (code: number, message: string): void => send(code, { error: { code, message } });
    if (url.pathname === endpoints.findings.path) return send(200, { findings: this.store.findings() });
    if (url.pathname === endpoints.watch.path) return this.#watch(url, response, fail);
    const target = parseResourcePath(url.pathname);
    if (target === undefined || !isKind(target.kind)) return fail(404, "no such path");
    const { kind, object } = target;
    if (object === undefined) {
      const items = this.store.list(kind, url.searchParams.get("namespace") ?? undefined);
      return send(200, { resourceVersion: this.store.resourceVersion, items });
    }
    if (request.method === "GET") {
      const resource = this.store.get(kind, object.namespace, object.name);
      return resource === undefined ? fail(404, "no such object") : send(200, resource);
    }
    if (request.method === "DELETE") {
      const resource = await this.store.delete({ kind, ...object });
      return resource === undefined ? fail(404, "no such object") : send(200, { resource });
    }
    const body = JSON.parse(await readBody(request)) as ApplyRequest;
    const { resource, findings } = parseResource(body.resource, body.places);
    if (resource === undefined)
      return send(422, { error: { code: 422, message: "the resource is not valid" }, findings });
    return send(200, await this.store.apply(resource));
  }

  #watch(url: URL, response: ServerResponse, fail: (code: number, message: string) => void): void {
    const since = Number(url.searchParams.get("resourceVersion"));
    const kinds = (url.searchParams.get("kinds") ?? "").split(",");
    const missed = this.store.changesSince(since);
    if (missed === undefined) return fail(410, "too old");
    const write = (changes: readonly StoreChange[]): void => {
      for (const { type, resource, resourceVersion } of changes) {
        const event: WatchEvent = kinds.includes(resource.kind)
          ? { type, resource, resourceVersion }
          : { type: "bookmark", resourceVersion };
        response.write(`${JSON.stringify(event)}\n`);
      }
    };
    response.writeHead(200).flushHeaders();
    write(missed);
    const unwatch = this.store.watch(write);
    this.#watches.add(response);
    response.on("close", () => {
      unwatch();
      this.#watches.delete(response);
    });
  }
}

const account = (name: string, labels: Readonly<Record<string, string>> = {}): MeshResource => ({
  apiVersion: "v1",
  kind: "ServiceAccount",
  metadata: { name, namespace: "shop", labels },
});

/** What a watch told, and a way to wait for it. */
class Heard {
  readonly changes: string[] = [];
  #waiting: (() => void) | undefined;

  readonly onChanges = (batch: readonly StoreChange[]): void => {
    for (const { type, resource, previous } of batch) {
      const version = resource.metadata.labels?.["v"] ?? "";
      const before = previous?.metadata.labels?.["v"] ?? "";
      this.changes.push(`${type} ${resource.metadata.name}${version}${type === "modified" ? ` from ${before}` : ""}`);
    }
    this.#waiting?.();
  };

  async until(count: number): Promise<readonly string[]> {
    while (this.changes.length < count) await new Promise<void>((resolve) => (this.#waiting = resolve));
    return this.changes;
  }
}

const patience = { timeout: 10_000 };

test("list, get, apply, delete", patience, async (t) => {
  const plane = new TestControlPlane(new MemoryStore({ initialResourceVersion: 0 }));
  const client = new ApiClient({ endpoint: await plane.listen(t) });
  const namespace: MeshResource = { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop", namespace: "" } };
  assert.equal((await client.apply(namespace)).outcome, "created");
  assert.equal((await client.apply(namespace)).outcome, "unchanged");
  assert.equal((await client.apply(account("a"))).outcome, "created");
  assert.equal((await client.get("Namespace", "", "shop"))?.metadata.name, "shop");
  assert.equal(await client.get("Namespace", "", "other"), undefined);
  const list = await client.list("ServiceAccount", "shop");
  assert.equal(list.resourceVersion, 2);
  assert.deepEqual(
    list.items.map(({ metadata }) => metadata.name),
    ["a"],
  );
  assert.deepEqual((await client.list("ServiceAccount", "other")).items, []);
  assert.equal((await client.delete({ kind: "Namespace", namespace: "", name: "shop" }))?.metadata.name, "shop");
  assert.equal(await client.delete({ kind: "Namespace", namespace: "", name: "shop" }), undefined);
  assert.deepEqual(await client.findings(), []);
});

test("a refused resource comes back with findings that point into the user's file", patience, async (t) => {
  const plane = new TestControlPlane(new MemoryStore());
  const client = new ApiClient({ endpoint: await plane.listen(t) });
  const [resource] = loadText(
    "# a comment\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: a\n  labels: { x: y }\n",
    "a.yaml",
  ).resources;
  const broken = { ...resource!, metadata: { ...resource!.metadata, labels: { x: "not a label" } } };
  const answer = await client.apply(broken, { file: "a.yaml", at: { "": [2, 1], "/metadata/labels/x": [6, 13] } });
  assert.equal(answer.outcome, "rejected");
  assert.deepEqual(
    answer.findings.map(({ code, path, place }) => ({ code, path, place })),
    [{ code: "IST0106", path: "metadata.labels.x", place: { file: "a.yaml", line: 6, column: 13 } }],
  );
});

test("a token is sent over https alone", () => {
  for (const url of ["http://127.0.0.1:15014", "HTTP://127.0.0.1:15014", "//127.0.0.1:15014"]) {
    assert.throws(() => new ApiClient({ endpoint: { url, token: "secret", rootsPem: "" } }), /over https alone/, url);
  }
});

test("a control plane that is gone is an error", patience, async () => {
  // Port 1 is not listened on.
  await assert.rejects(new ApiClient({ endpoint: { url: "http://127.0.0.1:1" } }).list("Pod"), { status: 0 });
});

test("a watch tells what is there, then every change of its kinds, then goes on after a cut", patience, async (t) => {
  const store = new MemoryStore({ initialResourceVersion: 0 });
  const plane = new TestControlPlane(store);
  const client = new ApiClient({ endpoint: await plane.listen(t) });
  await store.apply(account("a", { v: "1" }));
  const heard = new Heard();
  const watch = client.watch(["ServiceAccount"], { onChanges: heard.onChanges, minBackoffMs: 1, maxBackoffMs: 2 });
  t.after(() => watch.close());
  await watch.ready;
  assert.deepEqual(heard.changes, ["added a1"]);
  await store.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: "n", namespace: "" } });
  await store.apply(account("a", { v: "2" }));
  await store.apply(account("b"));
  await store.delete({ kind: "ServiceAccount", namespace: "shop", name: "b" });
  assert.deepEqual((await heard.until(4)).slice(1), ["modified a2 from 1", "added b", "deleted b"]);
  plane.cutWatches();
  await store.apply(account("c"));
  assert.deepEqual((await heard.until(5)).slice(4), ["added c"]);
  assert.deepEqual(
    watch.list("ServiceAccount").map(({ metadata }) => metadata.name),
    ["a", "c"],
  );
  assert.equal(watch.get("ServiceAccount", "shop", "c")?.metadata.name, "c");
  // It went on from its version instead of listing anew.
  assert.equal(plane.requests.filter((line) => !line.includes("/watch")).length, 1);
  watch.close();
  await watch.closed;
});

test("a watch whose version is gone lists anew and tells the difference", patience, async (t) => {
  const plane = new TestControlPlane(new MemoryStore({ initialResourceVersion: 0 }));
  const client = new ApiClient({ endpoint: await plane.listen(t) });
  await plane.store.applyAll([account("a", { v: "1" }), account("b"), account("c", { v: "1" })]);
  const heard = new Heard();
  const watch = client.watch(["ServiceAccount"], {
    onChanges: heard.onChanges,
    minBackoffMs: 1,
    maxBackoffMs: 2,
  });
  t.after(() => watch.close());
  await heard.until(3);
  // Another life of the control plane, as after a restart: other versions, other objects.
  const second = new MemoryStore({ initialResourceVersion: 1000 });
  await second.applyAll([account("a", { v: "2" }), account("c", { v: "1" }), account("d")]);
  plane.store = second;
  plane.cutWatches();
  const told = (await heard.until(6)).slice(3);
  assert.ok(told.includes("deleted b") && told.includes("modified a2 from 1") && told.includes("added d"), told.join());
});

test("a watch waits for a control plane that is not there yet", patience, async (t) => {
  const store = new MemoryStore();
  await store.apply(account("a"));
  const plane = new TestControlPlane(store);
  const endpoint = await plane.listen(t);
  let attempts = 0;
  const target = { url: "http://127.0.0.1:1" };
  const heard = new Heard();
  const watch = new ApiClient({
    endpoint: {
      get url() {
        return target.url;
      },
    },
  }).watch(["ServiceAccount"] satisfies Kind[], {
    onChanges: heard.onChanges,
    onFailure: () => {
      attempts += 1;
      if (attempts === 3) target.url = endpoint.url;
    },
    minBackoffMs: 1,
    maxBackoffMs: 2,
  });
  t.after(() => watch.close());
  await watch.ready;
  assert.deepEqual(heard.changes, ["added a"]);
  assert.ok(attempts >= 3);
});

test("paths of objects", () => {
  const cases = [
    { kind: "VirtualService", namespace: "shop", name: "catalog" },
    { kind: "Namespace", namespace: "", name: "shop" },
    { kind: "Service", namespace: "a b", name: "ä/ö" },
  ];
  for (const key of cases) {
    const { kind, ...object } = key;
    assert.deepEqual(parseResourcePath(pathOf(endpoints.readResource, key)), { kind, object });
  }
  assert.equal(pathOf(endpoints.readResource, cases[1]!), "/api/v1/resources/Namespace/-/shop");
  for (const path of [
    "/",
    "/api/v1/resources",
    "/api/v1/resources/",
    "/api/v1/resources/A/b",
    "/api/v1/resources/A/b/c/d",
    "/api/v1/resources/%zz",
  ]) {
    assert.equal(parseResourcePath(path), undefined, path);
  }
});
