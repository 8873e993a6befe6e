// Every transition of the client's conversation, as scripts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ResourceTypeName, resourceType } from "../resource-types.ts";
import { type SotwClientAction, type SotwClientEvent, SotwClientStream } from "./client-stream.ts";

type Event = SotwClientEvent<undefined>;

const opened: Event = { kind: "opened" };
const ended: Event = { kind: "ended", reason: "gone" };
const wake: Event = { kind: "wake" };
const close: Event = { kind: "close" };

function subscribe(changes: Partial<Record<ResourceTypeName, string>>): Event {
  const entries = Object.entries(changes) as [ResourceTypeName, string][];
  const names = entries.map(([type, list]) => {
    return [type, list === "*" ? ("*" as const) : new Set(list.split(" ").filter((name) => name !== ""))] as const;
  });
  return { kind: "subscribe", changes: new Map(names) };
}

function response(type: ResourceTypeName, nonce: string, names: string): Event {
  const list = names.split(" ").filter((name) => name !== "");
  const { typeUrl } = resourceType(type);
  return {
    kind: "response",
    response: { typeUrl, versionInfo: `v${nonce}`, nonce, names: list, content: undefined },
  };
}

function verdict(nonce: string, stream: number, ...errors: readonly string[]): Event {
  return { kind: "verdict", nonce, stream, errors: errors.map((name) => ({ name, message: "bad" })) };
}

type Action = SotwClientAction<undefined>;
const shows: { readonly [K in Action["kind"]]: (action: Action & { kind: K }) => string } = {
  open: () => "open",
  end: () => "end",
  send: ({ request: { type, names, versionInfo, nonce, error, first } }) =>
    `send ${type.shortName}${first ? " node" : ""} [${names.join(" ")}] version=${versionInfo} nonce=${nonce}${error === undefined ? "" : ` error=${error}`}`,
  deliver: ({ type, stream, response: { nonce, names }, removed }) =>
    `deliver ${type} ${nonce} on ${stream}: ${names.join(" ")}${removed.length === 0 ? "" : ` removed: ${removed.join(" ")}`}`,
  expire: ({ type, stream, names }) => `expire ${type} on ${stream}: ${names.join(" ")}`,
  state: ({ state }) => (state.kind === "waiting" ? `waiting until ${state.retryAtMs}` : state.kind),
  ignored: ({ typeUrl }) => `ignored ${typeUrl}`,
};

function show(action: Action): string {
  return (shows[action.kind] as (action: Action) => string)(action);
}

interface Script {
  readonly name: string;
  readonly steps: readonly (readonly [Event, readonly string[], number?])[];
}

const scripts: readonly Script[] = [
  {
    name: "subscriptions made before the stream stands are sent with it, the node once, in make-before-break order",
    steps: [
      [subscribe({ LDS: "*", CDS: "*" }), []],
      [subscribe({ RDS: "r s" }), []],
      [
        opened,
        [
          "streaming",
          "send CDS node [] version= nonce=",
          "send LDS [] version= nonce=",
          "send RDS [r s] version= nonce=",
        ],
      ],
    ],
  },
  {
    name: "a response that is accepted is acknowledged with its version and nonce",
    steps: [
      [subscribe({ CDS: "*" }), []],
      [opened, ["streaming", "send CDS node [] version= nonce="]],
      [response("CDS", "1", "a b"), ["deliver CDS 1 on 1: a b"]],
      [verdict("1", 1), ["send CDS [] version=v1 nonce=1"]],
    ],
  },
  {
    name: "a response that is refused is answered with the version before and the offenders' names",
    steps: [
      [subscribe({ CDS: "*" }), []],
      [opened, ["streaming", "send CDS node [] version= nonce="]],
      [response("CDS", "1", "a"), ["deliver CDS 1 on 1: a"]],
      [verdict("1", 1), ["send CDS [] version=v1 nonce=1"]],
      [response("CDS", "2", "a b"), ["deliver CDS 2 on 1: a b"]],
      [
        verdict("2", 1, "a", "b"),
        ["send CDS [] version=v1 nonce=2 error=Error adding/updating cluster(s) a: bad, b: bad"],
      ],
      [response("CDS", "3", "a"), ["deliver CDS 3 on 1: a removed: b"]],
      [verdict("3", 1), ["send CDS [] version=v3 nonce=3"]],
    ],
  },
  {
    name: "responses are handed over one at a time, in order",
    steps: [
      [subscribe({ CDS: "*", LDS: "*" }), []],
      [opened, ["streaming", "send CDS node [] version= nonce=", "send LDS [] version= nonce="]],
      [response("CDS", "1", "a"), ["deliver CDS 1 on 1: a"]],
      [response("LDS", "2", "l"), []],
      [verdict("1", 1), ["send CDS [] version=v1 nonce=1", "deliver LDS 2 on 1: l"]],
      [verdict("2", 1), ["send LDS [] version=v2 nonce=2"]],
    ],
  },
  {
    name: "a changed subscription carries the nonce answered last, and the ACK carries the new names",
    steps: [
      [subscribe({ EDS: "a" }), []],
      [opened, ["streaming", "send EDS node [a] version= nonce="]],
      [response("EDS", "1", "a"), ["deliver EDS 1 on 1: a"]],
      [subscribe({ EDS: "a b" }), ["send EDS [a b] version= nonce="]],
      [verdict("1", 1), ["send EDS [a b] version=v1 nonce=1"]],
      [subscribe({ EDS: "b a" }), []],
      [subscribe({ EDS: "" }), ["send EDS [] version=v1 nonce=1"]],
    ],
  },
  {
    name: "full state: names left out are removed; named types remove nothing",
    steps: [
      [subscribe({ LDS: "*", RDS: "r s" }), []],
      [opened, ["streaming", "send LDS node [] version= nonce=", "send RDS [r s] version= nonce="]],
      [response("LDS", "1", "a b c"), ["deliver LDS 1 on 1: a b c"]],
      [verdict("1", 1), ["send LDS [] version=v1 nonce=1"]],
      [response("LDS", "2", "b"), ["deliver LDS 2 on 1: b removed: a c"]],
      [verdict("2", 1), ["send LDS [] version=v2 nonce=2"]],
      [response("RDS", "3", "r"), ["deliver RDS 3 on 1: r"]],
      [verdict("3", 1), ["send RDS [r s] version=v3 nonce=3"]],
      [response("RDS", "4", "s"), ["deliver RDS 4 on 1: s"]],
    ],
  },
  {
    name: "a new stream is told the versions accepted, and no nonce",
    steps: [
      [subscribe({ CDS: "*" }), []],
      [opened, ["streaming", "send CDS node [] version= nonce="]],
      [response("CDS", "1", "a"), ["deliver CDS 1 on 1: a"]],
      [verdict("1", 1), ["send CDS [] version=v1 nonce=1"]],
      [ended, ["waiting until 1075"], 1_000],
      [subscribe({ RDS: "r" }), []],
      [wake, ["connecting", "open"], 1_075],
      [opened, ["streaming", "send CDS node [] version=v1 nonce=", "send RDS [r] version= nonce="]],
      [response("CDS", "2", "b"), ["deliver CDS 2 on 2: b removed: a"]],
    ],
  },
  {
    name: "back-off doubles with each failure up to its maximum, and starts anew after a response",
    steps: [
      [ended, ["waiting until 75"], 0],
      [wake, ["connecting", "open"], 75],
      [ended, ["waiting until 225"], 75],
      [wake, ["connecting", "open"], 225],
      [ended, ["waiting until 525"], 225],
      [wake, ["connecting", "open"], 525],
      [ended, ["waiting until 825"], 525],
      [wake, ["connecting", "open"], 825],
      [subscribe({ CDS: "*" }), []],
      [opened, ["streaming", "send CDS node [] version= nonce="]],
      [response("CDS", "1", "a"), ["deliver CDS 1 on 5: a"]],
      [ended, ["waiting until 975"], 900],
      [ended, [], 901],
    ],
  },
  {
    name: "the verdict of a lost stream keeps its version and is not sent on the next",
    steps: [
      [subscribe({ CDS: "*" }), []],
      [opened, ["streaming", "send CDS node [] version= nonce="]],
      [response("CDS", "1", "a"), ["deliver CDS 1 on 1: a"]],
      [ended, ["waiting until 75"]],
      [wake, ["connecting", "open"], 75],
      [opened, ["streaming", "send CDS node [] version= nonce="]],
      [response("CDS", "9", "b"), []],
      [verdict("1", 1), ["deliver CDS 9 on 2: b removed: a"]],
      [verdict("9", 2), ["send CDS [] version=v9 nonce=9"]],
    ],
  },
  {
    name: "nothing is asked for an empty list of names, and the wildcard after names has its own name",
    steps: [
      [subscribe({ LDS: "" }), []],
      [opened, ["streaming"]],
      [subscribe({ LDS: "a" }), ["send LDS node [a] version= nonce="]],
      [subscribe({ LDS: "*" }), ["send LDS [*] version= nonce="]],
    ],
  },
  {
    name: "a type that was not asked for is ignored",
    steps: [
      [opened, ["streaming"]],
      [response("EDS", "1", "a"), [`ignored ${resourceType("EDS").typeUrl}`]],
    ],
  },
  {
    name: "closed is for good",
    steps: [
      [close, ["closed", "end"]],
      [opened, []],
      [ended, []],
      [subscribe({ CDS: "*" }), []],
    ],
  },
];

for (const { name, steps } of scripts) {
  test(name, () => {
    const stream = new SotwClientStream<undefined>({ backOff: { baseMs: 100, maxMs: 400 }, random: () => 0.5 });
    assert.deepEqual(stream.start().map(show), ["connecting", "open"]);
    let nowMs = 0;
    for (const [index, [event, expected, timeMs]] of steps.entries()) {
      nowMs = timeMs ?? nowMs;
      assert.deepEqual(stream.step(event, nowMs).map(show), expected, `step ${index}`);
    }
  });
}
