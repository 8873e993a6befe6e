// Server and client machines against each other under random histories: declarations, subscriptions, slow and merged
// answers, refusals, lost streams. Whatever happened, once it is quiet the proxy holds what was declared, except what
// it refuses.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import * as fc from "fast-check";
import type { ResourceError } from "../ads-client-api.ts";
import type { EncodedResource } from "../encoded-resource.ts";
import { type ResourceTypeName, resourceType, resourceTypes } from "../resource-types.ts";
import { type SotwClientAction, SotwClientStream, type SotwRequest } from "./client-stream.ts";
import { type SotwServerAction, SotwServerStream } from "./server-stream.ts";
import { tries } from "../../../../tests/tools/tries.ts";

const names = ["a", "b", "c"] as const;
const types = ["CDS", "EDS", "LDS", "RDS"] as const;
type SimulatedType = (typeof types)[number];

const limits = { maxOutstandingResponses: 2, ackTimeoutMs: 1_000, dependencyTimeoutMs: 100, removalTimeoutMs: 300 };

type Resources = readonly EncodedResource[];
type Response = SotwServerAction & { kind: "send" };
type Held = Map<string, EncodedResource>;

const isBad = (resource: EncodedResource): boolean => resource.version.startsWith("bad");

function versioned(type: ResourceTypeName, name: string, version: string): EncodedResource {
  const encoded = { name, version, any: create(AnySchema, { typeUrl: resourceType(type).typeUrl }) };
  return type === "CDS" ? { ...encoded, endpointsName: name } : encoded;
}

/** Version 0 leaves the resource out; 7 and above are refused by every proxy. */
function resourcesOf(type: ResourceTypeName, versions: readonly number[]): ReadonlyMap<string, EncodedResource> {
  const present = names.map((name, index) => [name, versions[index]!] as const).filter(([, version]) => version > 0);
  return new Map(
    present.map(([name, version]) => [name, versioned(type, name, version >= 7 ? `bad${version}` : `v${version}`)]),
  );
}

class World {
  nowMs = 0;
  readonly declared = new Map<SimulatedType, ReadonlyMap<string, EncodedResource>>();
  readonly subscribed = new Map<SimulatedType, ReadonlySet<string> | "*">();
  readonly held = new Map<SimulatedType, Held>(types.map((type) => [type, new Map()]));
  /** Sound versions that the proxy applied while they were declared, until the declaration lacks them. */
  readonly running = new Map<SimulatedType, Held>(types.map((type) => [type, new Map()]));
  readonly client = new SotwClientStream<Resources>({ backOff: { baseMs: 10, maxMs: 40 }, random: () => 0.5 });
  server: SotwServerStream | undefined;
  #serverCount = 0;
  #toClient: Response[] = [];
  #toServer: SotwRequest[] = [];

  constructor() {
    this.#client(this.client.start());
  }

  declare(type: SimulatedType, versions: readonly number[]): void {
    const resources = resourcesOf(type, versions);
    this.declared.set(type, resources);
    const running = this.running.get(type)!;
    for (const name of running.keys()) if (!resources.has(name)) running.delete(name);
    this.#server({ kind: "declare", changes: new Map([[type, this.declared.get(type)!]]) });
  }

  subscribe(type: SimulatedType, wanted: readonly string[]): void {
    const subscription = resourceType(type).wildcard ? ("*" as const) : new Set(wanted);
    this.subscribed.set(type, subscription);
    for (const kept of [this.held, this.running]) {
      for (const name of kept.get(type)!.keys()) {
        if (subscription !== "*" && !subscription.has(name)) kept.get(type)!.delete(name);
      }
    }
    this.#client(this.client.step({ kind: "subscribe", changes: new Map([[type, subscription]]) }, this.nowMs));
  }

  pass(ms: number): void {
    this.nowMs += ms;
    this.#client(this.client.step({ kind: "wake" }, this.nowMs));
    this.#server({ kind: "wake" });
  }

  cut(): void {
    this.server = undefined;
    this.#toClient = [];
    this.#toServer = [];
    this.#client(this.client.step({ kind: "ended", reason: "cut" }, this.nowMs));
  }

  deliverToClient(): boolean {
    const response = this.#toClient.shift();
    if (response === undefined) return false;
    const { type, versionInfo, nonce, resources } = response;
    const received = {
      typeUrl: type.typeUrl,
      versionInfo,
      nonce,
      names: resources.map(({ name }) => name),
      content: resources,
    };
    this.#client(this.client.step({ kind: "response", response: received }, this.nowMs));
    return true;
  }

  deliverToServer(): boolean {
    const request = this.#toServer.shift();
    if (request === undefined) return false;
    const { type, names: wanted, nonce, error } = request;
    this.#server({ kind: "request", typeUrl: type.typeUrl, names: wanted, nonce, error });
    return true;
  }

  /**
   * As Envoy does while it applies other types: of two requests for a type, the newer one goes, with the older's error.
   * Not where the names differ: a name given up and asked for again in one request is what this protocol cannot tell.
   */
  mergeRequests(): void {
    const [first] = this.#toServer;
    const index = this.#toServer.findIndex((request, at) => at > 0 && request.type === first?.type);
    const later = this.#toServer[index];
    if (first === undefined || later === undefined || first.names.join() !== later.names.join()) return;
    this.#toServer[index] = { ...later, error: later.error ?? first.error, first: first.first };
    this.#toServer.shift();
  }

  /** Everything is delivered, and every time-out has come. */
  settle(): void {
    for (let round = 0; round < 400; round += 1) {
      const moved = this.deliverToClient() || this.deliverToServer();
      if (!moved) this.pass(50);
    }
  }

  #server(event: Parameters<SotwServerStream["step"]>[0]): void {
    for (const action of this.server?.step(event, this.nowMs) ?? [])
      if (action.kind === "send") this.#toClient.push(action);
  }

  #client(actions: readonly SotwClientAction<Resources>[]): void {
    for (const action of actions) {
      if (action.kind === "open") this.#open();
      if (action.kind === "send") this.#toServer.push(action.request);
      if (action.kind === "deliver") this.#apply(action);
    }
  }

  #open(): void {
    this.#serverCount += 1;
    this.server = new SotwServerStream({ limits, noncePrefix: `${this.#serverCount}-` });
    this.#server({ kind: "declare", changes: new Map(this.declared) });
    this.#client(this.client.step({ kind: "opened" }, this.nowMs));
  }

  #isSubscribed(type: SimulatedType, name: string): boolean {
    const subscription = this.subscribed.get(type);
    return subscription === "*" || (subscription?.has(name) ?? false);
  }

  /** A proxy: applies what is sound, keeps its own version of the rest, deletes what a full state leaves out. */
  #apply({ type, response, removed, stream }: SotwClientAction<Resources> & { kind: "deliver" }): void {
    const held = this.held.get(type as SimulatedType)!;
    const errors: ResourceError[] = [];
    for (const name of removed) held.delete(name);
    for (const each of response.content) {
      if (isBad(each)) errors.push({ name: each.name, message: "refused" });
      else if (this.#isSubscribed(type as SimulatedType, each.name)) {
        held.set(each.name, each);
        const simulated = type as SimulatedType;
        if (this.declared.get(simulated)?.has(each.name)) this.running.get(simulated)!.set(each.name, each);
      }
    }
    this.#client(this.client.step({ kind: "verdict", nonce: response.nonce, stream, errors }, this.nowMs));
  }
}

const typeOf = fc.constantFrom(...types);
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(fc.constant("declare" as const), typeOf, fc.array(fc.nat(8), { minLength: 3, maxLength: 3 })),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(fc.constant("subscribe" as const), typeOf, fc.subarray([...names], { minLength: 1 })),
  },
  { weight: 8, arbitrary: fc.tuple(fc.constant("to client" as const)) },
  { weight: 8, arbitrary: fc.tuple(fc.constant("to server" as const)) },
  { weight: 2, arbitrary: fc.tuple(fc.constant("merge" as const)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant("cut" as const)) },
  { weight: 2, arbitrary: fc.tuple(fc.constant("pass" as const), fc.integer({ min: 1, max: 500 })) },
);

function perform(world: World, [kind, ...rest]: readonly [string, ...unknown[]]): void {
  switch (kind) {
    case "declare":
      world.declare(rest[0] as SimulatedType, rest[1] as number[]);
      break;
    case "subscribe":
      world.subscribe(rest[0] as SimulatedType, rest[1] as string[]);
      break;
    case "to client":
      world.deliverToClient();
      break;
    case "to server":
      world.deliverToServer();
      break;
    case "merge":
      world.mergeRequests();
      break;
    case "cut":
      world.cut();
      break;
    default:
      world.pass(rest[0] as number);
  }
}

function check(world: World): void {
  const status = world.server!.status();
  for (const type of types) {
    const declared = world.declared.get(type);
    const subscribed = world.subscribed.get(type);
    if (declared === undefined || subscribed === undefined) continue;
    const wanted = [...declared.values()].filter(({ name }) => subscribed === "*" || subscribed.has(name));
    const held = world.held.get(type)!;
    for (const each of wanted) {
      // A refused version takes nothing away: what ran before it still runs.
      if (isBad(each))
        assert.ok(held.has(each.name) || !world.running.get(type)!.has(each.name), `${type} lost ${each.name}`);
      else assert.equal(held.get(each.name)?.version, each.version, `${type} ${each.name}`);
    }
    if (resourceType(type).fullState) {
      const gone = [...held.keys()].filter((name) => !declared.has(name));
      assert.deepEqual(gone, [], `${type} still holds`);
    }
    const state = status.get(type)!.state;
    const expected = wanted.some(isBad) ? ["ERROR"] : ["SYNCED", ...(wanted.length === 0 ? ["NOT SENT"] : [])];
    assert.ok(expected.includes(state), `${type} is ${state}, not ${expected.join(" or ")}`);
  }
}

test("whatever happened, the proxy ends with what was declared", () => {
  assert.equal(resourceTypes.length, 7);
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 60, size: "max" }), (history) => {
      const world = new World();
      for (const each of history) perform(world, each);
      world.settle();
      check(world);
    }),
    { numRuns: tries({ short: 400, long: 2000 }) },
  );
});
