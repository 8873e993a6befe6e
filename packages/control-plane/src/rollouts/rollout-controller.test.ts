// Roll-outs over a store, with proxies' metrics that a test makes up and a clock that it moves.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ManualClock } from "@tulle/timing/testing";
import { loadText, MemoryStore, type MeshResource } from "@tulle/config";
import { buildEndpoints } from "../snapshot/build-endpoints.ts";
import { writtenRoutes } from "../snapshot/build-snapshot.ts";
import type { QueryResult } from "./query-prometheus.ts";
import { RolloutRefused } from "./asked.ts";
import { RolloutController } from "./rollout-controller.ts";
import type { RolloutState } from "./rollout-machine.ts";
import { openSavedRollouts } from "./saved-rollouts.ts";

const host = "catalog.shop.svc.cluster.local";
const pod = (name: string, version: string, ready = true): string => `---
apiVersion: v1
kind: Pod
metadata: { name: ${name}, namespace: shop, labels: { app: catalog, version: ${version}, security.istio.io/tlsMode: istio } }
spec: { containers: [{ name: a }] }
status: { podIP: ${name} }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: ${name}, namespace: shop, labels: { kubernetes.io/service-name: catalog } }
addressType: IPv4
ports: [{ name: http, port: 3000 }]
endpoints: [{ addresses: [127.0.0.${version.slice(1)}], conditions: { ready: ${ready} }, targetRef: { kind: Pod, name: ${name} } }]
`;
const service = `
apiVersion: v1
kind: Service
metadata: { name: catalog, namespace: shop }
spec: { selector: { app: catalog }, ports: [{ name: http, port: 80 }] }
`;
const rule = `---
apiVersion: networking.tulle.io/v1
kind: DestinationRule
metadata: { name: catalog, namespace: shop }
spec: { host: catalog, subsets: [{ name: v1, labels: { version: v1 } }, { name: v2, labels: { version: v2 } }] }
`;
const mesh = service + rule + pod("catalog-v1", "v1") + pod("catalog-v2", "v2");
const rate = "{ name: rate, successRate: {}, thresholdRange: { min: 90 }, interval: 10s, minRequests: 10 }";
const rollout = (strategy: string, more = "", name = "catalog"): string => `---
apiVersion: rollouts.tulle.io/v1alpha1
kind: Rollout
metadata: { name: ${name}, namespace: shop }
spec: { host: catalog, stable: { subset: v1 }, canary: { subset: v2 }, strategy: ${strategy}${more} }
`;
const steps = (list: string, more = ""): string => `{ canary: { steps: [${list}]${more} } }`;
const twoSteps = steps("{ setWeight: 20 }, { setWeight: 50 }", `, analysis: { metrics: [${rate}] }`);

class World {
  readonly clock = new ManualClock(1_000_000);
  readonly store = new MemoryStore();
  /** What the catalog's client shows: requests by version and status. */
  readonly requests = new Map<string, number>();
  answers = true;
  /** Who has the address of the other one's agent. */
  stranger: string | undefined;
  query: (address: string, allowed: readonly string[]) => QueryResult = () => ({ value: 1 });
  /** What is on disk. */
  text: string | undefined;
  isDiskFull = false;
  /** Whether it leads, of several. */
  leads = true;
  readonly #told = new Set<() => void>();
  controller!: RolloutController;

  static async with(...documents: readonly string[]): Promise<World> {
    const world = new World();
    await world.apply(...documents);
    await world.start();
    return world;
  }

  /** A control plane begins, with what an earlier one has saved. */
  async start(): Promise<void> {
    const saved = await openSavedRollouts(
      {
        read: async () => (this.text === undefined ? undefined : { text: this.text, mayBeKnown: false }),
        write: async (_name, text) => {
          if (this.isDiskFull) throw new Error("the disk is full");
          this.text = text;
        },
        placeOf: (name) => name,
        follow: this.follow,
      },
      (reason) => assert.fail(reason),
    );
    const silent = () => undefined;
    this.controller = new RolloutController({
      store: this.store,
      reader: this.store,
      saved,
      leadership: this,
      sources: {
        readMetrics: async (address) => {
          if (address === "catalog-v2" && this.stranger !== undefined) return { stranger: this.stranger };
          return this.answers && address === "catalog-v1" ? this.#lines() : undefined;
        },
        query: async ({ address }, allowed) => this.query(address, allowed),
      },
      clock: this.clock,
      log: { debug: silent, info: silent, warning: silent, error: silent } as never,
    });
    this.meshChanged();
    await this.settle();
  }

  get isLeader(): boolean {
    return this.leads;
  }

  readonly leader = "the other one";

  readonly follow = (listener: () => void) => {
    this.#told.add(listener);
    return () => void this.#told.delete(listener);
  };

  /** Another has written, or leads. */
  async tell(): Promise<void> {
    for (const listener of this.#told) listener();
    await this.settle();
  }

  async apply(...documents: readonly string[]): Promise<void> {
    for (const resource of documents.flatMap(resourcesOf)) await this.store.apply(resource);
  }

  meshChanged(): void {
    this.controller.meshChanged({ endpoints: buildEndpoints(this.store, writtenRoutes(this.store)) });
  }

  async settle(): Promise<void> {
    for (let turn = 0; turn < 5; turn += 1) {
      await this.controller.settled();
      await nextTurn();
    }
  }

  async pass(seconds: number): Promise<void> {
    this.clock.pass(seconds * 1000);
    await this.settle();
  }

  /** Requests to a version since the last ones. */
  send(version: string, count: number, status = 200): void {
    const key = `${version} ${status}`;
    this.requests.set(key, (this.requests.get(key) ?? 0) + count);
  }

  async act(...[action, isFull]: [Parameters<RolloutController["act"]>[2], boolean?]): Promise<void> {
    await this.controller.act("shop", "catalog", action, { by: "ann", isFull: isFull ?? false });
    await this.settle();
  }

  /** Phase and percent, and what is laid. */
  get now(): string {
    const { phase, weight } = this.view;
    const laid = this.controller.overlays.map((each) => `${each.weight}`).join();
    return `${phase} ${weight} laid ${laid || "nothing"}`;
  }

  get view() {
    return this.controller.view("shop", "catalog")!;
  }

  get saved(): RolloutState | undefined {
    return (JSON.parse(this.text ?? "{}") as Record<string, RolloutState>)["shop/catalog"];
  }

  #lines(): readonly string[] {
    return [...this.requests].map(([key, count]) => {
      const [version, status] = key.split(" ");
      return `istio_requests_total{reporter="source",destination_workload="catalog-${version}",destination_workload_namespace="shop",destination_service="${host}",response_code="${status}"} ${count}`;
    });
  }
}

function resourcesOf(text: string): readonly MeshResource[] {
  const { resources, findings } = loadText(text, "mesh.yaml");
  assert.deepEqual(
    findings.filter(({ severity }) => severity === "error"),
    [],
  );
  return resources;
}

test("applied, it changes nothing until it is started", async () => {
  const world = await World.with(mesh, rollout(twoSteps));
  assert.equal(world.now, "Idle 0 laid nothing");
  await assert.rejects(world.act("pause"), /has not been started/);
});

test("forward on evidence alone, to the end", async () => {
  const world = await World.with(mesh, rollout(twoSteps));
  await world.act("start");
  assert.equal(world.now, "Progressing 20 laid 20");
  await world.pass(100);
  assert.equal(world.now, "Progressing 20 laid 20");
  assert.match(world.view.message, /measures rate before it goes on: 0 of 10 requests to the canary so far/);
  world.send("v2", 9);
  world.send("v1", 1000);
  await world.pass(10);
  assert.match(world.view.message, /9 of 10 requests/);
  // What is too little is not lost: the measurement goes on.
  world.send("v2", 1);
  await world.pass(10);
  assert.equal(world.now, "Progressing 50 laid 50");
  assert.match(world.view.metrics[0]!.last!.text, /^100 % \(0 failed of 10 requests, seen by clients/);
  // Not by what came before.
  await world.pass(10);
  assert.equal(world.now, "Progressing 50 laid 50");
  world.send("v2", 100);
  await world.pass(10);
  assert.equal(world.now, "Completed 100 laid 100");
  await assert.rejects(world.act("start"), /has completed: name other versions/);
  await assert.rejects(world.act("abort"), /has completed/);
});

test("back at the first bad measurement, with the numbers", async () => {
  const world = await World.with(mesh, rollout(twoSteps));
  await world.act("start");
  world.send("v2", 8);
  world.send("v2", 2, 503);
  await world.pass(10);
  assert.equal(world.now, "Aborted 0 laid 0");
  assert.match(world.view.message, /rate: 80 % \(2 failed of 10 requests, seen by clients; wanted at least 90 %\)/);
  assert.equal(world.saved?.outcome, "aborted");
  world.send("v2", 100);
  await world.pass(1000);
  assert.equal(world.now, "Aborted 0 laid 0");
  await world.act("start");
  assert.equal(world.view.revision, 2);
  assert.equal(world.now, "Progressing 20 laid 20");
});

test("traffic that stops in between: it waits, and says so", async () => {
  const world = await World.with(mesh, rollout(twoSteps));
  await world.act("start");
  world.send("v2", 10);
  await world.pass(10);
  await world.pass(100_000);
  assert.equal(world.now, "Progressing 50 laid 50");
  assert.match(world.view.message, /0 of 10 requests/);
});

test("proxies that do not answer pause it, and no longer than that", async () => {
  const world = await World.with(mesh, rollout(twoSteps));
  world.answers = false;
  await world.act("start");
  await world.pass(10);
  assert.equal(world.now, "Paused 20 laid 20");
  assert.match(world.view.message, /no proxy shows its metrics/);
  world.answers = true;
  await world.pass(10);
  assert.equal(world.now, "Progressing 20 laid 20");
  world.send("v2", 10);
  await world.pass(10);
  assert.equal(world.now, "Progressing 50 laid 50");
});

test("while a stranger has an agent's address nothing is good, it says who, and what is bad still goes back", async () => {
  const world = await World.with(mesh, rollout(twoSteps));
  world.stranger = "127.0.0.2:15020 is held by process 7 (x) of user m (uid 9)";
  await world.act("start");
  world.send("v2", 10);
  await world.pass(10);
  await world.pass(10);
  assert.equal(world.now, "Paused 20 laid 20");
  const said = `${world.stranger}, which is not the agent of the pod shop/catalog-v2: what it says is not counted, and no measurement is good. End it, and the agent takes its address again`;
  assert.equal(world.view.message, said);
  assert.equal(world.view.history.filter(({ text }) => text === said).length, 1);
  world.stranger = undefined;
  await world.pass(10);
  assert.equal(world.now, "Progressing 50 laid 50", "by what was counted meanwhile");
  world.stranger = "127.0.0.2:15020 is held by a program of user m (uid 9)";
  world.send("v2", 10, 503);
  await world.pass(10);
  assert.equal(world.now, "Aborted 0 laid 0");
  assert.match(world.view.message, /: rate: 0 % \(10 failed/);
});

const prometheus =
  '{ name: query, prometheus: { address: "http://p.test", query: up }, thresholdRange: { min: 1 }, interval: 10s }';

test("a Prometheus that does not answer pauses it with the reason", async () => {
  const world = await World.with(mesh, rollout(steps(`{ setWeight: 20 }, { analysis: { metrics: [${prometheus}] } }`)));
  world.query = () => ({ problem: "http://p.test does not answer: refused" });
  await world.act("start");
  await world.pass(10);
  assert.equal(world.now, "Paused 20 laid 20");
  assert.equal(world.view.message, "http://p.test does not answer: refused");
  world.query = () => ({ empty: "the query gives 0 numbers, and one is needed" });
  await world.pass(10);
  assert.equal(world.now, "Progressing 20 laid 20");
  assert.match(world.view.message, /measures query: the query gives 0 numbers/);
  world.query = () => ({ value: 1 });
  await world.pass(10);
  assert.equal(world.now, "Completed 100 laid 100");
});

test("the operator's list of addresses is handed on as it is now", async () => {
  const world = await World.with(mesh, rollout(steps(`{ analysis: { metrics: [${prometheus}] } }`)));
  const seen: string[] = [];
  world.query = (address, allowed) => {
    seen.push(`${address} of ${allowed.join()}`);
    return { problem: "not listed" };
  };
  await world.act("start");
  await world.pass(10);
  await world.apply(
    'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: tulle, namespace: tulle-system }\ndata: { mesh: "rolloutPrometheusUrls: [http://p.test]" }\n',
  );
  await world.pass(10);
  assert.deepEqual(seen, ["http://p.test of ", "http://p.test of http://p.test"]);
});

for (const killedAt of [0, 1, 2] as const) {
  test(`a control plane that is killed after ${killedAt} steps goes on there`, async () => {
    const world = await World.with(
      mesh,
      rollout(
        steps("{ setWeight: 20 }, { pause: { duration: 10s } }, { setWeight: 50 }, { pause: { duration: 10s } }"),
      ),
    );
    await world.act("start");
    await world.pass(10 * killedAt);
    const before = world.now;
    // Whatever of it is still under way has no effect on the next one.
    await world.start();
    assert.equal(world.now, before);
    await world.pass(10);
    await world.pass(10);
    assert.equal(world.now, "Completed 100 laid 100");
    await world.start();
    assert.equal(world.now, "Completed 100 laid 100");
  });
}

test("evidence is gathered anew after a restart, and what was borne stays", async () => {
  const borne = rate.replace("minRequests", "failureLimit: 1, minRequests");
  const world = await World.with(
    mesh,
    rollout(steps("{ setWeight: 20 }, { pause: {} }", `, analysis: { metrics: [${borne}] }`)),
  );
  await world.act("start");
  world.send("v2", 10, 500);
  await world.pass(10);
  assert.equal(world.view.metrics[0]?.bad, 1);
  world.send("v2", 10, 500);
  await world.start();
  await world.pass(10);
  assert.equal(world.now, "Paused 20 laid 20", "failures that nobody has counted");
  world.send("v2", 10, 500);
  await world.pass(10);
  assert.equal(world.now, "Aborted 0 laid 0");
});

test("nothing more before it is on disk, and back whatever the disk", async () => {
  const world = await World.with(
    mesh,
    rollout(steps("{ setWeight: 20 }, { pause: { duration: 10s } }, { setWeight: 50 }, { pause: {} }")),
  );
  await world.act("start");
  world.isDiskFull = true;
  await world.pass(10);
  assert.equal(world.now, "Paused 20 laid 20");
  assert.match(world.view.message, /cannot be saved: Error: the disk is full/);
  await world.act("abort").catch(() => undefined);
  assert.equal(world.now, "Aborted 0 laid 0");
  world.isDiskFull = false;
  await world.pass(5);
  assert.equal(world.saved?.outcome, "aborted");
});

test("nothing more while it is frozen, whoever asks, and on when that is over", async () => {
  const pause = "{ setWeight: 20 }, { pause: { duration: 10s } }, { setWeight: 50 }, { pause: {} }";
  const world = await World.with(mesh, rollout(steps(pause)));
  await world.act("start");
  await world.apply(rollout(steps(pause), ", freeze: { enabled: true }"));
  await world.pass(100);
  assert.equal(world.now, "Paused 20 laid 20");
  assert.match(world.view.message, /frozen by freeze.enabled/);
  await assert.rejects(world.act("promote"), /cannot go on: frozen/);
  await world.apply(rollout(steps(pause)));
  await world.settle();
  assert.equal(world.now, "Paused 50 laid 50");
});

test("an edit of the Rollout counts from the next start", async () => {
  const world = await World.with(mesh, rollout(steps("{ setWeight: 20 }, { pause: {} }")));
  await world.act("start");
  await world.apply(rollout(steps("{ setWeight: 70 }, { pause: {} }")));
  await world.settle();
  assert.equal(world.now, "Paused 20 laid 20");
  assert.ok(world.view.isEdited);
  await world.act("abort");
  await world.act("start");
  assert.equal(world.now, "Paused 70 laid 70");
});

test("a subset that goes pauses it; it goes on when it is there again", async () => {
  const world = await World.with(
    mesh,
    rollout(steps("{ setWeight: 20 }, { pause: { duration: 10s } }, { setWeight: 50 }, { pause: {} }")),
  );
  await world.act("start");
  await world.apply(rule.replace("{ name: v2,", "{ name: other,"));
  world.meshChanged();
  await world.pass(10);
  assert.equal(world.view.phase, "Paused");
  assert.match(world.view.message, /no DestinationRule of catalog\.shop\.svc\.cluster\.local names the subset v2/);
  await world.apply(rule);
  world.meshChanged();
  await world.settle();
  assert.equal(world.now, "Paused 50 laid 50");
});

test("a canary without a pod that is ready gets nothing meanwhile", async () => {
  const world = await World.with(
    mesh,
    rollout(steps("{ setHeaderRoute: { match: { name: x } } }, { setWeight: 20 }, { pause: {} }")),
  );
  await world.act("start");
  await world.apply(pod("catalog-v2", "v2", false));
  world.meshChanged();
  await world.settle();
  assert.equal(world.now, "Paused 20 laid 0");
  assert.equal(world.controller.overlays[0]?.headerMatch, undefined);
  assert.match(world.view.message, /no pod of the canary is ready: everything goes to the stable version/);
  await world.apply(pod("catalog-v2", "v2"));
  world.meshChanged();
  await world.settle();
  assert.equal(world.now, "Paused 20 laid 20");
});

test("deleted, its weights are gone, and its state", async () => {
  const world = await World.with(mesh, rollout(twoSteps));
  await world.act("start");
  let told = 0;
  world.controller.follow(() => (told += 1));
  await world.store.delete({ kind: "Rollout", namespace: "shop", name: "catalog" });
  await world.settle();
  assert.deepEqual(world.controller.overlays, []);
  assert.equal(told, 1);
  assert.equal(world.saved, undefined);
});

test("forgotten while no control plane runs, one of its name begins at its own beginning", async () => {
  const world = await World.with(mesh, rollout(twoSteps));
  await world.act("start");
  const before = world.text;
  await world.store.delete({ kind: "Rollout", namespace: "shop", name: "catalog" });
  await world.settle();
  world.text = before;
  await world.start();
  await world.apply(rollout(twoSteps));
  await world.settle();
  assert.equal(world.now, "Idle 0 laid nothing");
});

const cannotStart: readonly {
  readonly name: string;
  readonly documents: readonly string[];
  readonly reason: RegExp;
}[] = [
  { name: "no Service", documents: [rollout(twoSteps)], reason: /there is no Service catalog\.shop/ },
  { name: "no subset", documents: [service, rollout(twoSteps)], reason: /names the subset/ },
  {
    name: "no VirtualService",
    documents: [mesh, rollout(twoSteps, ", virtualService: { name: a }")],
    reason: /there is no VirtualService shop\/a/,
  },
  {
    name: "every route leads elsewhere",
    documents: [
      mesh,
      rollout(twoSteps),
      `---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: catalog, namespace: shop }
spec: { hosts: [catalog], http: [{ route: [{ destination: { host: catalog, subset: v2 } }] }] }
`,
    ],
    reason: /no route leads to both versions of catalog\.shop/,
  },
  {
    name: "no port that a proxy routes",
    documents: [mesh.replace("port: 80", "port: 80, protocol: UDP"), rollout(twoSteps)],
    reason: /no route leads to both versions of catalog\.shop/,
  },
  {
    name: "another of the host",
    documents: [mesh, rollout(twoSteps, "", "first"), rollout(twoSteps)],
    reason: /the Rollout shop\/first is of that host, too/,
  },
  {
    name: "one workload for both versions",
    documents: [
      service,
      rule,
      pod("catalog-v1", "v1"),
      pod("catalog-v2", "v2").replace(
        "labels:",
        "ownerReferences: [{ apiVersion: v1, kind: Job, name: catalog-v1 }], labels:",
      ),
      rollout(twoSteps),
    ],
    reason: /shop\/catalog-v1 runs pods of both versions/,
  },
];

for (const { name, documents, reason } of cannotStart) {
  test(`does not start: ${name}`, async () => {
    const world = await World.with(...documents);
    await assert.rejects(
      world.act("start"),
      (error: unknown) => error instanceof RolloutRefused && reason.test(error.message),
    );
    assert.equal(world.now, "Idle 0 laid nothing");
  });
}

test("one that does not lead lays what the leader has saved, and goes on from there once it leads", async () => {
  const leading = await World.with(mesh, rollout(twoSteps));
  const other = new World();
  other.leads = false;
  await other.apply(mesh, rollout(twoSteps));
  await other.start();
  await leading.act("start");
  other.text = leading.text;
  await other.tell();
  assert.equal(other.now, "Progressing 20 laid 20");
  await assert.rejects(other.act("pause"), /ask the control plane that leads: the other one/);
  other.send("v2", 100, 503);
  await other.pass(100);
  assert.equal(other.now, "Progressing 20 laid 20", "it measures nothing");
  other.leads = true;
  await other.tell();
  other.send("v2", 100);
  await other.pass(10);
  assert.equal(other.now, "Progressing 50 laid 50");
  other.leads = false;
  await other.tell();
  other.send("v2", 100);
  await other.pass(100);
  assert.equal(other.now, "Progressing 50 laid 50", "it has ended to lead");
});

test("a roll-out that is heard of after it was saved is laid, too", async () => {
  const leading = await World.with(mesh, rollout(twoSteps));
  await leading.act("start");
  const other = new World();
  other.leads = false;
  other.text = leading.text;
  await other.apply(mesh);
  await other.start();
  await other.apply(rollout(twoSteps));
  await other.settle();
  assert.equal(other.now, "Progressing 20 laid 20");
});
