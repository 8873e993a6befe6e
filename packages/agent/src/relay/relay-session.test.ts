// The relay's session with a proxy and a control plane that are scripts, on a clock that the test moves.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { AnySchema, anyPack } from "@bufbuild/protobuf/wkt";
import {
  type ByteStreamEvents,
  type ResourceTypeName,
  decodeRequest,
  decodeResponse,
  encodeResponse,
  resourceName,
  resourceType,
  resourceTypeOfUrl,
} from "@tulle/xds";
import { DiscoveryRequestSchema, ResourceSchema } from "@tulle/xds/envoy/service/discovery/v3/discovery_pb";
import { ManualClock } from "@tulle/timing/testing";
import { RelaySession } from "./relay-session.ts";
import { SotwConversation } from "./sotw-conversation.ts";
import type { SavedState } from "./saved-state.ts";
import type { StateKeeper } from "./state-keeper.ts";

/** A resource with nothing but its name, field 1. */
const named = (name: string): Uint8Array => Buffer.from([10, name.length, ...Buffer.from(name)]);

/** Notes what is kept; the file is state-keeper's affair. */
class NotedState {
  readonly notes: string[] = [];
  readonly state: SavedState;

  constructor(saved: Partial<Record<ResourceTypeName, string>>) {
    const types = Object.entries(saved) as [ResourceTypeName, string][];
    this.state = new Map(
      types.map(([type, names]) => {
        const resources = new Map(names.split(" ").map((name) => [name, { value: named(name) }]));
        return [type, { versionInfo: "saved", resources }];
      }),
    );
  }

  replace(type: ResourceTypeName, versionInfo: string, resources: ReadonlyMap<string, unknown>): void {
    this.notes.push(`replace ${type} ${versionInfo}: ${[...resources.keys()].join(" ")}`);
  }

  merge(type: ResourceTypeName, versionInfo: string, resources: ReadonlyMap<string, unknown>): void {
    this.notes.push(`merge ${type} ${versionInfo}: ${[...resources.keys()].join(" ")}`);
  }

  keepOnly(type: ResourceTypeName, names: ReadonlySet<string>): void {
    this.notes.push(`keep only ${type}: ${[...names].join(" ")}`);
  }
}

class Scene {
  readonly clock = new ManualClock();
  readonly keeper: NotedState;
  readonly session: RelaySession;
  readonly log: string[] = [];
  #upstream: ByteStreamEvents | undefined;

  constructor(saved: Partial<Record<ResourceTypeName, string>> = {}) {
    this.keeper = new NotedState(saved);
    this.session = new RelaySession({
      toProxy: (bytes) => {
        const { typeUrl, nonce, resources } = decodeResponse(bytes);
        const names = resources.map(({ value }) => resourceName(value)).join(" ");
        this.log.push(`to proxy: ${resourceTypeOfUrl(typeUrl)!.shortName} ${nonce}: ${names}`);
        return true;
      },
      openUpstream: (events) => {
        this.#upstream = events;
        return {
          write: (bytes) => this.#wrote(bytes),
          pause: () => undefined,
          resume: () => undefined,
          close: () => undefined,
        };
      },
      conversation: new SotwConversation({ keeper: this.keeper as unknown as StateKeeper, clock: this.clock }),
      clock: this.clock,
      random: () => 1,
      backOff: { baseMs: 100, maxMs: 400 },
      graceMs: 1_000,
      onState: (state) => this.log.push(state),
    });
  }

  #wrote(bytes: Uint8Array): void {
    const { typeUrl, resourceNames, responseNonce, node, errorDetail } = decodeRequest(bytes);
    const parts = [node === undefined ? "" : "node ", `[${resourceNames.join(" ")}]`];
    if (responseNonce !== "") parts.push(` nonce=${responseNonce}`);
    if (errorDetail !== undefined) parts.push(` error=${errorDetail.message}`);
    this.log.push(`to control plane: ${resourceTypeOfUrl(typeUrl)!.shortName} ${parts.join("")}`);
  }

  open(): void {
    this.#upstream!.onOpen();
  }

  end(): void {
    this.#upstream!.onEnd("gone");
  }

  respond(type: ResourceTypeName, nonce: string, ...names: readonly string[]): void {
    const { typeUrl } = resourceType(type);
    const resources = names.map((name) => create(AnySchema, { typeUrl, value: named(name) }));
    this.#upstream!.onMessage(encodeResponse({ typeUrl, versionInfo: `v-${nonce}`, nonce, resources }));
  }

  /** In wrappers with a time to live; those of `livesOn` without their content. */
  respondWithTtl(type: ResourceTypeName, nonce: string, names: readonly string[], livesOn: readonly string[]): void {
    const { typeUrl } = resourceType(type);
    const wrapped = [...names, ...livesOn].map((name) =>
      anyPack(
        ResourceSchema,
        create(ResourceSchema, {
          name,
          ttl: { seconds: 60n },
          ...(names.includes(name) && { resource: create(AnySchema, { typeUrl, value: named(name) }) }),
        }),
      ),
    );
    this.#upstream!.onMessage(encodeResponse({ typeUrl, versionInfo: `v-${nonce}`, nonce, resources: wrapped }));
  }

  garble(): void {
    this.#upstream!.onMessage(Uint8Array.of(0xff));
  }

  ask(type: ResourceTypeName, names: string, nonce = "", error?: string): void {
    const request = create(DiscoveryRequestSchema, {
      typeUrl: resourceType(type).typeUrl,
      resourceNames: names.split(" ").filter((name) => name !== ""),
      responseNonce: nonce,
      node: { id: "n" },
      ...(error === undefined ? {} : { errorDetail: { message: error } }),
    });
    this.session.fromProxy(toBinary(DiscoveryRequestSchema, request));
  }

  /** What has happened since the last look. */
  take(): readonly string[] {
    return this.log.splice(0);
  }
}

test("live: requests and responses pass as they are, and what is acknowledged is kept", () => {
  const scene = new Scene();
  scene.open();
  scene.ask("CDS", "");
  scene.respond("CDS", "n1", "a", "b");
  scene.ask("CDS", "", "n1");
  scene.respond("RDS", "n2", "unasked");
  scene.ask("RDS", "r s");
  scene.respond("RDS", "n3", "r");
  scene.respond("RDS", "n4", "s");
  scene.ask("RDS", "r s", "n4");
  assert.deepEqual(scene.take(), [
    "connecting",
    "live",
    "to control plane: CDS node []",
    "to proxy: CDS n1: a b",
    "to control plane: CDS node [] nonce=n1",
    "to proxy: RDS n2: unasked",
    "to control plane: RDS node [r s]",
    "to proxy: RDS n3: r",
    "to proxy: RDS n4: s",
    "to control plane: RDS node [r s] nonce=n4",
  ]);
  assert.deepEqual(scene.keeper.notes, ["replace CDS v-n1: a b", "merge RDS v-n3: r", "merge RDS v-n4: s"]);
});

test("a heartbeat neither answers for all clusters nor empties what is kept of them", () => {
  const scene = new Scene({ CDS: "a b" });
  scene.open();
  scene.ask("CDS", "");
  scene.respondWithTtl("CDS", "n1", [], ["a"]);
  scene.ask("CDS", "", "n1");
  assert.deepEqual(scene.keeper.notes, []);
  scene.take();
  scene.end();
  assert.deepEqual(scene.take(), ["offline", "to proxy: CDS saved-1-1: a b"], "nobody has said which there are");
});

test("clusters that live on are kept beside those that are sent", () => {
  const scene = new Scene({ CDS: "a b" });
  scene.open();
  scene.ask("CDS", "");
  scene.respondWithTtl("CDS", "n1", ["c"], ["a"]);
  scene.ask("CDS", "", "n1");
  scene.ask("EDS", "e f");
  scene.respondWithTtl("EDS", "n2", ["e"], ["f"]);
  scene.ask("EDS", "e f", "n2");
  assert.deepEqual(scene.keeper.notes, ["replace CDS v-n1: c a", "merge EDS v-n2: e"]);
});

test("live: what nobody asked for passes, and is neither kept nor remembered", () => {
  const scene = new Scene({ RDS: "unasked" });
  scene.open();
  scene.ask("RDS", "r");
  scene.respond("RDS", "n1", "r", "unasked");
  scene.ask("RDS", "r", "n1");
  assert.deepEqual(scene.keeper.notes, ["merge RDS v-n1: r"]);
  scene.respond("RDS", "n2", "unasked");
  scene.ask("RDS", "r", "n2");
  assert.deepEqual(scene.keeper.notes, ["merge RDS v-n1: r"]);
});

test("live: a refusal that names listeners keeps the others, and the saved version of those", () => {
  const scene = new Scene({ LDS: "m" });
  scene.open();
  scene.ask("LDS", "");
  scene.respond("LDS", "n1", "l", "m", "x");
  scene.ask("LDS", "", "n1", "Error adding/updating listener(s) m: bad, x: bad");
  assert.deepEqual(scene.keeper.notes, ["replace LDS v-n1: l m"]);
});

test("live: a refusal that names nothing passes, and is not kept", () => {
  const scene = new Scene();
  scene.open();
  scene.ask("LDS", "");
  scene.respond("LDS", "n1", "l");
  scene.take();
  scene.ask("LDS", "", "n1", "cannot bind");
  assert.deepEqual(scene.take(), ["to control plane: LDS node [] nonce=n1 error=cannot bind"]);
  assert.deepEqual(scene.keeper.notes, []);
});

test("requests before the connection are sent with it, the node once", () => {
  const scene = new Scene({ CDS: "saved" });
  scene.ask("CDS", "");
  scene.ask("LDS", "");
  scene.open();
  assert.deepEqual(scene.take(), [
    "connecting",
    "live",
    "to control plane: CDS node []",
    "to control plane: LDS node []",
  ]);
});

test("offline: a start is served from the saved state, named types one resource a response", () => {
  const scene = new Scene({ CDS: "a b", RDS: "r s", LDS: "l" });
  scene.ask("CDS", "");
  scene.end();
  scene.ask("LDS", "");
  scene.ask("RDS", "r s unknown");
  scene.ask("CDS", "", "saved-1-1");
  assert.deepEqual(scene.take(), [
    "connecting",
    "offline",
    "to proxy: CDS saved-1-1: a b",
    "to proxy: LDS saved-1-2: l",
    "to proxy: RDS saved-1-3: r",
    "to proxy: RDS saved-1-4: s",
  ]);
  assert.deepEqual(scene.keeper.notes, [], "what came from the saved state is not news");
});

test("the control plane comes back: subscriptions are replayed, answers to the relay's own responses stop here", () => {
  const scene = new Scene({ CDS: "a", EDS: "a b" });
  scene.ask("CDS", "");
  scene.end();
  scene.take();
  scene.clock.pass(100);
  scene.open();
  scene.ask("CDS", "", "saved-1-1");
  scene.ask("EDS", "a");
  scene.respond("CDS", "n1", "a", "b");
  scene.ask("CDS", "", "n1");
  scene.respond("EDS", "n2", "a");
  scene.ask("EDS", "a", "n2");
  assert.deepEqual(scene.take(), [
    "connecting",
    "live",
    "to control plane: CDS node []",
    "to control plane: EDS node [a]",
    "to proxy: CDS n1: a b",
    "to control plane: CDS node [] nonce=n1",
    "to proxy: EDS n2: a",
    "to control plane: EDS node [a] nonce=n2",
  ]);
});

test("renewed: the same is asked for on a new stream, without a pause and without a word to the proxy", () => {
  const scene = new Scene({ CDS: "a" });
  scene.session.renew();
  scene.open();
  scene.ask("CDS", "");
  scene.respond("CDS", "n1", "a");
  scene.take();
  scene.session.renew();
  // The answer to what the old stream brought means nothing on the new one.
  scene.ask("CDS", "", "n1");
  scene.open();
  scene.respond("CDS", "n2", "a");
  scene.ask("CDS", "", "n2");
  assert.deepEqual(scene.take(), [
    "connecting",
    "live",
    "to control plane: CDS node []",
    "to proxy: CDS n2: a",
    "to control plane: CDS node [] nonce=n2",
  ]);
  scene.end();
  scene.take();
  scene.session.renew();
  assert.deepEqual(scene.take(), [], "one that is offline connects by itself");
});

test("an answer to a lost stream's response is kept and stops here; new names in it go on without the nonce", () => {
  const scene = new Scene();
  scene.open();
  scene.ask("EDS", "a");
  scene.respond("EDS", "n1", "a");
  scene.end();
  scene.clock.pass(100);
  scene.open();
  scene.take();
  scene.ask("EDS", "a", "n1");
  scene.ask("EDS", "a b", "n1");
  assert.deepEqual(scene.take(), ["to control plane: EDS node [a b]"]);
  assert.deepEqual(scene.keeper.notes, ["merge EDS v-n1: a"]);
});

test("a change that was delivered just before the control plane died is kept when the proxy accepts it after", () => {
  const scene = new Scene();
  scene.open();
  scene.ask("CDS", "");
  scene.respond("CDS", "n1", "new");
  scene.end();
  scene.ask("CDS", "", "n1");
  assert.deepEqual(scene.keeper.notes, ["replace CDS v-n1: new"]);
});

test("what was answered live is not answered again from the saved state", () => {
  const scene = new Scene({ CDS: "old", EDS: "a b" });
  scene.open();
  scene.ask("CDS", "");
  scene.respond("CDS", "n1", "new");
  scene.ask("EDS", "a");
  scene.respond("EDS", "n2", "a");
  scene.end();
  scene.take();
  scene.ask("EDS", "a b", "n2");
  assert.deepEqual(scene.take(), ["to proxy: EDS saved-1-1: b"]);
});

test("a control plane that says nothing is stood in for after graceMs", () => {
  const scene = new Scene({ CDS: "a", LDS: "l", RDS: "r" });
  scene.open();
  scene.ask("CDS", "");
  scene.take();
  scene.clock.pass(999);
  assert.deepEqual(scene.take(), []);
  scene.clock.pass(1);
  assert.deepEqual(scene.take(), ["to proxy: CDS saved-1-1: a"]);
  scene.ask("LDS", "");
  assert.deepEqual(scene.take(), ["to control plane: LDS node []", "to proxy: LDS saved-1-2: l"], "no second wait");
  scene.respond("CDS", "n1", "a");
  scene.ask("RDS", "r");
  assert.deepEqual(scene.take(), ["to proxy: CDS n1: a", "to control plane: RDS node [r]"], "it has spoken");
  scene.end();
  assert.deepEqual(scene.take(), ["offline", "to proxy: RDS saved-1-3: r"]);
});

test("a name given up and asked for again is answered again", () => {
  const scene = new Scene({ RDS: "r s" });
  scene.end();
  scene.ask("RDS", "r s");
  scene.ask("RDS", "s", "saved-1-2");
  scene.ask("RDS", "r s", "saved-1-2");
  assert.deepEqual(scene.take().slice(2), [
    "to proxy: RDS saved-1-1: r",
    "to proxy: RDS saved-1-2: s",
    "to proxy: RDS saved-1-3: r",
  ]);
});

test("names that a settled proxy gives up are forgotten, those of one that starts are not", () => {
  const scene = new Scene();
  scene.open();
  scene.ask("EDS", "a b");
  scene.respond("EDS", "n1", "a");
  scene.ask("EDS", "a", "n1");
  scene.clock.pass(60_000);
  scene.respond("EDS", "n2", "a");
  scene.ask("EDS", "a", "n2");
  assert.deepEqual(scene.keeper.notes, ["merge EDS v-n1: a", "merge EDS v-n2: a", "keep only EDS: a"]);
});

test("back-off doubles until something is heard", () => {
  const scene = new Scene();
  for (const delayMs of [100, 200, 400, 400]) {
    scene.end();
    scene.clock.pass(delayMs - 1);
    assert.equal(scene.session.state, "offline");
    scene.clock.pass(1);
    assert.equal(scene.session.state, "connecting");
  }
  scene.open();
  scene.ask("CDS", "");
  scene.respond("CDS", "n1");
  scene.end();
  scene.clock.pass(100);
  assert.equal(scene.session.state, "connecting");
});

test("a control plane that talks nonsense is left, and tried again", () => {
  const scene = new Scene({ CDS: "a" });
  scene.open();
  scene.ask("CDS", "");
  scene.take();
  scene.garble();
  assert.deepEqual(scene.take(), ["offline", "to proxy: CDS saved-1-1: a"]);
  scene.clock.pass(100);
  assert.deepEqual(scene.take(), ["connecting"]);
});

test("a proxy that talks nonsense is an error of the caller, and a closed session does nothing more", () => {
  const scene = new Scene();
  scene.open();
  assert.throws(() => scene.session.fromProxy(Uint8Array.of(0xff)));
  scene.take();
  scene.session.close();
  scene.clock.pass(100_000);
  assert.deepEqual(scene.take(), ["closed"]);
});
