// Every transition of the server's stream, as scripts: what happens, when, and what the machine does about it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import type { EncodedResource } from "../encoded-resource.ts";
import { type ResourceTypeName, resourceType } from "../resource-types.ts";
import { type SotwServerAction, type SotwServerEvent, SotwServerStream } from "./server-stream.ts";

const limits = { maxOutstandingResponses: 2, ackTimeoutMs: 100, dependencyTimeoutMs: 50, removalTimeoutMs: 200 };

/** `a@1` is the resource `a` in version 1. A cluster `a` waits for the endpoints `a`. */
function resource(text: string, type: ResourceTypeName): EncodedResource {
  const [name, version] = text.split("@") as [string, string];
  const encoded = { name, version, any: create(AnySchema, { typeUrl: resourceType(type).typeUrl }) };
  return type === "CDS" ? { ...encoded, endpointsName: name } : encoded;
}

function declare(changes: Partial<Record<ResourceTypeName, string>>): SotwServerEvent {
  const entries = Object.entries(changes) as [ResourceTypeName, string][];
  const maps = entries.map(([type, list]) => {
    const resources = list.split(" ").filter((text) => text !== "");
    return [type, new Map(resources.map((text) => [text.split("@")[0]!, resource(text, type)]))] as const;
  });
  return { kind: "declare", changes: new Map(maps) };
}

function ask(type: ResourceTypeName, names: string, nonce = "", error?: string): SotwServerEvent {
  const list = names.split(" ").filter((name) => name !== "");
  return { kind: "request", typeUrl: resourceType(type).typeUrl, names: list, nonce, error };
}

const wake: SotwServerEvent = { kind: "wake" };
const full: SotwServerEvent = { kind: "writable", writable: false };
const drained: SotwServerEvent = { kind: "writable", writable: true };

const tags = (resources: readonly { readonly name: string; readonly version: string }[]): string =>
  resources.map(({ name, version }) => `${name}@${version}`).join(" ");

const shows: { readonly [K in SotwServerAction["kind"]]: (action: SotwServerAction & { kind: K }) => string } = {
  send: ({ type, nonce, resources }) => `send ${type.shortName} ${nonce}: ${tags(resources)}`,
  subscribed: ({ type, names }) => `subscribed ${type} ${names === "*" ? "*" : [...names].join(" ")}`.trim(),
  acked: ({ acknowledgement: { type, nonce, names } }) => `acked ${type} ${nonce}: ${names.join(" ")}`,
  nacked: ({ rejection: { type, nonce, offenders } }) => `nacked ${type} ${nonce}: ${tags(offenders)}`,
  ignored: ({ ignored }) =>
    `ignored ${ignored.reason}: ${ignored.reason === "unknown type" ? ignored.typeUrl : ignored.nonce}`,
};

function show(action: SotwServerAction): string {
  return (shows[action.kind] as (action: SotwServerAction) => string)(action);
}

interface Script {
  readonly name: string;
  /** Event, what it causes, and the time if it passes. */
  readonly steps: readonly (readonly [SotwServerEvent, readonly string[], number?])[];
  /** `TYPE STATE` of the types that are not NOT SENT. */
  readonly status: readonly string[];
  readonly nextWakeMs?: number;
}

const scripts: readonly Script[] = [
  {
    name: "a first request subscribes; a declaration answers it; an ACK settles it",
    steps: [
      [ask("CDS", ""), ["subscribed CDS *"]],
      [declare({ CDS: "a@1 b@1" }), ["send CDS 1: a@1 b@1"]],
      [ask("CDS", "", "1"), ["acked CDS 1: a b"]],
    ],
    status: ["CDS SYNCED"],
  },
  {
    name: "what is sent and unanswered is STALE, and a newer declaration waits and is merged",
    steps: [
      [ask("CDS", ""), ["subscribed CDS *"]],
      [declare({ CDS: "a@1" }), ["send CDS 1: a@1"]],
      [declare({ CDS: "a@2" }), []],
      [declare({ CDS: "a@3 b@1" }), []],
      [ask("CDS", "", "1"), ["acked CDS 1: a", "send CDS 2: a@3 b@1"]],
    ],
    status: ["CDS STALE"],
  },
  {
    name: "a declaration before the request is served at once",
    steps: [
      [declare({ CDS: "a@1" }), []],
      [ask("CDS", ""), ["subscribed CDS *", "send CDS 1: a@1"]],
    ],
    status: ["CDS STALE"],
  },
  {
    name: "an empty declaration is an answer for a full-state type",
    steps: [
      [ask("LDS", ""), ["subscribed LDS *"]],
      [declare({ LDS: "" }), ["send LDS 1: "]],
      [ask("LDS", "", "1"), ["acked LDS 1: "]],
    ],
    status: ["LDS SYNCED"],
  },
  {
    name: "an equal declaration sends nothing",
    steps: [
      [ask("CDS", ""), ["subscribed CDS *"]],
      [declare({ CDS: "a@1" }), ["send CDS 1: a@1"]],
      [ask("CDS", "", "1"), ["acked CDS 1: a"]],
      [declare({ CDS: "a@1" }), []],
      [ask("CDS", "", "1"), ["ignored stale nonce: 1"]],
    ],
    status: ["CDS SYNCED"],
  },
  {
    name: "routes and endpoints go out one a response, and only names that are asked for",
    steps: [
      [declare({ RDS: "r@1 s@1 t@1" }), []],
      [ask("RDS", "r s"), ["subscribed RDS r s", "send RDS 1: r@1", "send RDS 2: s@1"]],
      [ask("RDS", "r s", "1"), ["acked RDS 1: r"]],
      [ask("RDS", "r s", "2"), ["acked RDS 2: s"]],
      [ask("RDS", "r s t", "2"), ["subscribed RDS r s t", "send RDS 3: t@1"]],
      [ask("RDS", "r s t", "3"), ["acked RDS 3: t"]],
      [declare({ RDS: "r@1 s@2 t@1" }), ["send RDS 4: s@2"]],
    ],
    status: ["RDS STALE"],
  },
  {
    name: "a resource is not sent twice before it is answered once",
    steps: [
      [declare({ EDS: "a@1 b@1" }), []],
      [ask("EDS", "a b"), ["subscribed EDS a b", "send EDS 1: a@1", "send EDS 2: b@1"]],
      [ask("EDS", "a b", "1"), ["acked EDS 1: a"]],
      [declare({ EDS: "a@1 b@2" }), []],
      [ask("EDS", "a b", "2"), ["acked EDS 2: b", "send EDS 3: b@2"]],
    ],
    status: ["EDS STALE"],
  },
  {
    name: "at most maxOutstandingResponses are unanswered, and more resources than that go in batches",
    steps: [
      [declare({ EDS: "a@1 b@1 c@1 d@1 e@1" }), []],
      [ask("EDS", "a b c d e"), ["subscribed EDS a b c d e", "send EDS 1: a@1 b@1 c@1", "send EDS 2: d@1 e@1"]],
      [declare({ EDS: "a@2 b@1 c@1 d@1 e@1" }), []],
      [ask("EDS", "a b c d e", "1"), ["acked EDS 1: a b c", "send EDS 3: a@2"]],
      [ask("EDS", "a b c d e", "2"), ["acked EDS 2: d e"]],
      [ask("EDS", "a b c d e", "3"), ["acked EDS 3: a"]],
    ],
    status: ["EDS SYNCED"],
  },
  {
    name: "a refused batch is sent again, one resource a response",
    steps: [
      [declare({ EDS: "a@1 b@1 c@1" }), []],
      [ask("EDS", "a b c"), ["subscribed EDS a b c", "send EDS 1: a@1 b@1", "send EDS 2: c@1"]],
      [ask("EDS", "a b c", "1", "bad"), ["nacked EDS 1: "]],
      [ask("EDS", "a b c", "2"), ["acked EDS 2: c", "send EDS 3: a@1"]],
      [ask("EDS", "a b c", "3"), ["acked EDS 3: a", "send EDS 4: b@1"]],
      [ask("EDS", "a b c", "4", "bad"), ["nacked EDS 4: b@1"]],
    ],
    status: ["EDS ERROR"],
  },
  {
    name: "one ACK for the newest of several responses covers those before it",
    steps: [
      [declare({ EDS: "a@1 b@1" }), []],
      [ask("EDS", "a b"), ["subscribed EDS a b", "send EDS 1: a@1", "send EDS 2: b@1"]],
      [ask("EDS", "a b", "2"), ["acked EDS 2: a b"]],
    ],
    status: ["EDS SYNCED"],
  },
  {
    name: "one NACK for several responses: each is sent again alone, and then the offender is known",
    steps: [
      [declare({ EDS: "a@1 b@1" }), []],
      [ask("EDS", "a b"), ["subscribed EDS a b", "send EDS 1: a@1", "send EDS 2: b@1"]],
      [ask("EDS", "a b", "2", "bad"), ["nacked EDS 2: ", "send EDS 3: a@1"]],
      [ask("EDS", "a b", "3", "bad"), ["nacked EDS 3: a@1", "send EDS 4: b@1"]],
      [ask("EDS", "a b", "4"), ["acked EDS 4: b"]],
    ],
    status: ["EDS ERROR"],
  },
  {
    name: "a refused route falls back to the version accepted before, and stays an error until it changes",
    steps: [
      [declare({ RDS: "r@1 s@1" }), []],
      [ask("RDS", "r s"), ["subscribed RDS r s", "send RDS 1: r@1", "send RDS 2: s@1"]],
      [ask("RDS", "r s", "1"), ["acked RDS 1: r"]],
      [ask("RDS", "r s", "2"), ["acked RDS 2: s"]],
      [declare({ RDS: "r@2 s@2" }), ["send RDS 3: r@2", "send RDS 4: s@2"]],
      [ask("RDS", "r s", "3", "no such cluster"), ["nacked RDS 3: r@2", "send RDS 5: r@1"]],
      [ask("RDS", "r s", "4"), ["acked RDS 4: s"]],
      [ask("RDS", "r s", "5"), ["acked RDS 5: r"]],
      [declare({ RDS: "r@2 s@3" }), ["send RDS 6: s@3"]],
      [ask("RDS", "r s", "6"), ["acked RDS 6: s"]],
    ],
    status: ["RDS ERROR"],
  },
  {
    name: "a new version ends the error and is tried",
    steps: [
      [declare({ RDS: "r@1" }), []],
      [ask("RDS", "r"), ["subscribed RDS r", "send RDS 1: r@1"]],
      [ask("RDS", "r", "1", "bad"), ["nacked RDS 1: r@1"]],
      [declare({ RDS: "r@2" }), ["send RDS 2: r@2"]],
      [ask("RDS", "r", "2"), ["acked RDS 2: r"]],
    ],
    status: ["RDS SYNCED"],
  },
  {
    name: "a refused listener that is named: the others are in effect, and it is left out if it never worked",
    steps: [
      [ask("LDS", ""), ["subscribed LDS *"]],
      [declare({ LDS: "0.0.0.0_80@1" }), ["send LDS 1: 0.0.0.0_80@1"]],
      [ask("LDS", "", "1"), ["acked LDS 1: 0.0.0.0_80"]],
      [declare({ LDS: "0.0.0.0_80@2 0.0.0.0_8080@1" }), ["send LDS 2: 0.0.0.0_80@2 0.0.0.0_8080@1"]],
      [
        ask("LDS", "", "2", "Error adding/updating listener(s) 0.0.0.0_8080: cannot bind '0.0.0.0:8080'"),
        ["nacked LDS 2: 0.0.0.0_8080@1", "send LDS 3: 0.0.0.0_80@2"],
      ],
      [ask("LDS", "", "3"), ["acked LDS 3: 0.0.0.0_80"]],
      [declare({ LDS: "0.0.0.0_80@3 0.0.0.0_8080@1" }), ["send LDS 4: 0.0.0.0_80@3"]],
    ],
    status: ["LDS ERROR"],
  },
  {
    name: "a listener refused in a stream's first response stays in: the proxy may run an older version of it",
    steps: [
      [ask("LDS", ""), ["subscribed LDS *"]],
      [declare({ LDS: "l@1 m@1" }), ["send LDS 1: l@1 m@1"]],
      [ask("LDS", "", "1", "listener m: bad"), ["nacked LDS 1: m@1"]],
      [declare({ LDS: "l@2 m@1" }), ["send LDS 2: l@2 m@1"]],
      [ask("LDS", "", "2", "listener m: bad"), ["nacked LDS 2: m@1"]],
      [declare({ LDS: "l@2 m@2" }), ["send LDS 3: l@2 m@2"]],
      [ask("LDS", "", "3"), ["acked LDS 3: l m"]],
    ],
    status: ["LDS SYNCED"],
  },
  {
    name: "a listener refused in a stream's first response and accepted when offered again is an error no more",
    steps: [
      [ask("LDS", ""), ["subscribed LDS *"]],
      [declare({ LDS: "l@1 m@1" }), ["send LDS 1: l@1 m@1"]],
      [ask("LDS", "", "1", "listener m: cannot bind"), ["nacked LDS 1: m@1"]],
      [declare({ LDS: "l@2 m@1" }), ["send LDS 2: l@2 m@1"]],
      [ask("LDS", "", "2"), ["acked LDS 2: l m"]],
      [declare({ LDS: "l@3 m@1" }), ["send LDS 3: l@3 m@1"]],
      [ask("LDS", "", "3"), ["acked LDS 3: l m"]],
    ],
    status: ["LDS SYNCED"],
  },
  {
    name: "a refusal of what is not declared any more is no error",
    steps: [
      [declare({ RDS: "r@1" }), []],
      [ask("RDS", "r"), ["subscribed RDS r", "send RDS 1: r@1"]],
      [declare({ RDS: "" }), []],
      [ask("RDS", "r", "1", "bad"), ["nacked RDS 1: r@1"]],
    ],
    status: ["RDS SYNCED"],
  },
  {
    name: "a refused change of a listener: its previous version is sent with the rest",
    steps: [
      [ask("LDS", ""), ["subscribed LDS *"]],
      [declare({ LDS: "l@1 m@1" }), ["send LDS 1: l@1 m@1"]],
      [ask("LDS", "", "1"), ["acked LDS 1: l m"]],
      [declare({ LDS: "l@2 m@2" }), ["send LDS 2: l@2 m@2"]],
      [ask("LDS", "", "2", "listener l: bad"), ["nacked LDS 2: l@2", "send LDS 3: l@1 m@2"]],
      [ask("LDS", "", "3"), ["acked LDS 3: l m"]],
    ],
    status: ["LDS ERROR"],
  },
  {
    name: "a refusal without names falls back on everything that was new",
    steps: [
      [ask("CDS", ""), ["subscribed CDS *"]],
      [declare({ CDS: "a@1 b@1" }), ["send CDS 1: a@1 b@1"]],
      [ask("CDS", "", "1"), ["acked CDS 1: a b"]],
      [declare({ CDS: "a@2 b@1 c@1" }), ["send CDS 2: a@2 b@1 c@1"]],
      [ask("CDS", "", "2", "something is wrong"), ["nacked CDS 2: a@2 c@1", "send CDS 3: a@1 b@1"]],
      [ask("CDS", "", "3"), ["acked CDS 3: a b"]],
    ],
    status: ["CDS ERROR"],
  },
  {
    name: "a refusal of what was accepted before is an error without a resend",
    steps: [
      [ask("CDS", ""), ["subscribed CDS *"]],
      [declare({ CDS: "a@1" }), ["send CDS 1: a@1"]],
      [ask("CDS", "", "1"), ["acked CDS 1: a"]],
      [ask("CDS", "a", "1"), ["subscribed CDS a", "send CDS 2: a@1"]],
      [ask("CDS", "a", "2", "out of memory"), ["nacked CDS 2: "]],
    ],
    status: ["CDS ERROR"],
  },
  {
    name: "a refused fallback is not offered for ever",
    steps: [
      [ask("LDS", ""), ["subscribed LDS *"]],
      [declare({ LDS: "l@1" }), ["send LDS 1: l@1"]],
      [ask("LDS", "", "1"), ["acked LDS 1: l"]],
      [declare({ LDS: "l@2" }), ["send LDS 2: l@2"]],
      [ask("LDS", "", "2", "l: bad"), ["nacked LDS 2: l@2", "send LDS 3: l@1"]],
      [ask("LDS", "", "3", "l: bad too"), ["nacked LDS 3: "]],
    ],
    status: ["LDS ERROR"],
  },
  {
    name: "an answer to an unknown nonce says nothing, but its names count",
    steps: [
      [declare({ EDS: "a@1 b@1" }), []],
      [ask("EDS", "a"), ["subscribed EDS a", "send EDS 1: a@1"]],
      [ask("EDS", "a", "x", "bad"), ["ignored stale nonce: x"]],
      [ask("EDS", "a b", "x"), ["subscribed EDS a b", "send EDS 2: b@1"]],
    ],
    status: ["EDS STALE"],
  },
  {
    name: "names given up are forgotten, and sent again when asked for again",
    steps: [
      [declare({ EDS: "a@1 b@1" }), []],
      [ask("EDS", "a b"), ["subscribed EDS a b", "send EDS 1: a@1", "send EDS 2: b@1"]],
      [ask("EDS", "a b", "2"), ["acked EDS 2: a b"]],
      [ask("EDS", "a", "2"), ["subscribed EDS a"]],
      [ask("EDS", "a b", "2"), ["subscribed EDS a b", "send EDS 3: b@1"]],
      [ask("EDS", "", "3"), ["acked EDS 3: b", "subscribed EDS"]],
    ],
    status: ["EDS IGNORED"],
  },
  {
    name: "clusters by name: a name that does not exist is an answer too, and a growing list is answered whole",
    steps: [
      [declare({ CDS: "a@1 b@1 c@1" }), []],
      [ask("CDS", "a x"), ["subscribed CDS a x", "send CDS 1: a@1"]],
      [ask("CDS", "a b", "1"), ["acked CDS 1: a", "subscribed CDS a b", "send CDS 2: a@1 b@1"]],
      [ask("CDS", "", "2"), ["acked CDS 2: a b", "subscribed CDS", "send CDS 3: "]],
    ],
    status: ["CDS IGNORED"],
  },
  {
    name: "the wildcard by its own name",
    steps: [
      [declare({ CDS: "a@1 b@1" }), []],
      [ask("CDS", "a"), ["subscribed CDS a", "send CDS 1: a@1"]],
      [ask("CDS", "* a", "1"), ["acked CDS 1: a", "subscribed CDS *", "send CDS 2: a@1 b@1"]],
    ],
    status: ["CDS STALE"],
  },
  {
    name: "a type that is not spoken",
    steps: [
      [
        { kind: "request", typeUrl: "type.googleapis.com/x.Y", names: [], nonce: "", error: undefined },
        ["ignored unknown type: type.googleapis.com/x.Y"],
      ],
    ],
    status: [],
  },
  {
    name: "make before break: listeners and routes follow the clusters and endpoints of the same push",
    steps: [
      [ask("CDS", ""), ["subscribed CDS *"]],
      [ask("LDS", ""), ["subscribed LDS *"]],
      [ask("RDS", "r"), ["subscribed RDS r"]],
      [declare({ RDS: "r@1", LDS: "l@1", EDS: "a@1", CDS: "a@1" }), ["send CDS 1: a@1"]],
      [ask("EDS", "a"), ["subscribed EDS a", "send EDS 2: a@1"]],
      [ask("CDS", "", "1"), ["acked CDS 1: a"]],
      [ask("EDS", "a", "2"), ["acked EDS 2: a", "send LDS 3: l@1", "send RDS 4: r@1"]],
    ],
    status: ["CDS SYNCED", "EDS SYNCED", "LDS STALE", "RDS STALE"],
  },
  {
    name: "endpoints that nobody asked for hold nothing",
    steps: [
      [ask("CDS", ""), ["subscribed CDS *"]],
      [ask("LDS", ""), ["subscribed LDS *"]],
      [declare({ LDS: "l@1", EDS: "a@1", CDS: "a@1" }), ["send CDS 1: a@1"]],
      [ask("CDS", "", "1"), ["acked CDS 1: a", "send LDS 2: l@1"]],
    ],
    status: ["CDS SYNCED", "LDS STALE"],
  },
  {
    name: "listeners wait for clusters no longer than dependencyTimeoutMs",
    steps: [
      [ask("CDS", ""), ["subscribed CDS *"]],
      [ask("LDS", ""), ["subscribed LDS *"]],
      [declare({ LDS: "l@1", CDS: "a@1" }), ["send CDS 1: a@1"], 10],
      [wake, [], 59],
      [wake, ["send LDS 2: l@1"], 60],
    ],
    status: ["CDS STALE", "LDS STALE"],
  },
  {
    name: "the time of the next wake",
    steps: [
      [ask("CDS", ""), ["subscribed CDS *"]],
      [ask("LDS", ""), ["subscribed LDS *"]],
      [declare({ LDS: "l@1", CDS: "a@1" }), ["send CDS 1: a@1"], 10],
    ],
    status: ["CDS STALE"],
    nextWakeMs: 60,
  },
  {
    name: "a push is not blocked for ever by an answer that does not come",
    steps: [
      [ask("CDS", ""), ["subscribed CDS *"]],
      [declare({ CDS: "a@1" }), ["send CDS 1: a@1"], 10],
      [declare({ CDS: "a@2" }), [], 20],
      [wake, [], 109],
      [wake, ["send CDS 2: a@2"], 110],
      [ask("CDS", "", "1"), ["acked CDS 1: a"], 111],
      [ask("CDS", "", "2"), ["acked CDS 2: a"], 112],
    ],
    status: ["CDS SYNCED"],
  },
  {
    name: "an answer that never comes does not hide that a later one is overdue",
    steps: [
      [ask("CDS", ""), ["subscribed CDS *"]],
      [declare({ CDS: "a@1" }), ["send CDS 1: a@1"], 10],
      [declare({ CDS: "a@2" }), [], 20],
      [wake, ["send CDS 2: a@2"], 110],
      [declare({ CDS: "a@3" }), [], 120],
    ],
    status: ["CDS STALE"],
    nextWakeMs: 210,
  },
  {
    name: "nothing is written into a full transport",
    steps: [
      [ask("CDS", ""), ["subscribed CDS *"]],
      [full, []],
      [declare({ CDS: "a@1" }), []],
      [wake, [], 1_000],
      [drained, ["send CDS 1: a@1"], 1_001],
    ],
    status: ["CDS STALE"],
  },
  {
    name: "a changed cluster gets its endpoints again, for it waits for them anew",
    steps: [
      [declare({ CDS: "a@1 b@1", EDS: "a@1 b@1" }), []],
      [ask("CDS", ""), ["subscribed CDS *", "send CDS 1: a@1 b@1"]],
      [ask("EDS", "a b"), ["subscribed EDS a b", "send EDS 2: a@1", "send EDS 3: b@1"]],
      [ask("CDS", "", "1"), ["acked CDS 1: a b"]],
      [ask("EDS", "a b", "3"), ["acked EDS 3: a b"]],
      [declare({ CDS: "a@2 b@1" }), ["send CDS 4: a@2 b@1", "send EDS 5: a@1"]],
    ],
    status: ["CDS STALE", "EDS STALE"],
  },
  {
    name: "an endpoint change sends endpoints alone",
    steps: [
      [declare({ CDS: "a@1", EDS: "a@1" }), []],
      [ask("CDS", ""), ["subscribed CDS *", "send CDS 1: a@1"]],
      [ask("EDS", "a"), ["subscribed EDS a", "send EDS 2: a@1"]],
      [ask("CDS", "", "1"), ["acked CDS 1: a"]],
      [ask("EDS", "a", "2"), ["acked EDS 2: a"]],
      [declare({ EDS: "a@2" }), ["send EDS 3: a@2"]],
    ],
    status: ["CDS SYNCED", "EDS STALE"],
  },
  {
    name: "a dropped cluster stays until the routes without it are acknowledged",
    steps: [
      [declare({ CDS: "a@1 b@1", RDS: "r@1" }), []],
      [ask("CDS", ""), ["subscribed CDS *", "send CDS 1: a@1 b@1"]],
      [ask("CDS", "", "1"), ["acked CDS 1: a b"]],
      [ask("RDS", "r"), ["subscribed RDS r", "send RDS 2: r@1"]],
      [ask("RDS", "r", "2"), ["acked RDS 2: r"]],
      [declare({ CDS: "a@1 c@1", RDS: "r@2" }), ["send CDS 3: a@1 c@1 b@1"]],
      [ask("CDS", "", "3"), ["acked CDS 3: a c b", "send RDS 4: r@2"]],
      [ask("RDS", "r", "4"), ["acked RDS 4: r", "send CDS 5: a@1 c@1"]],
    ],
    status: ["CDS STALE", "RDS SYNCED"],
  },
  {
    name: "a dropped cluster stays for removalTimeoutMs when the routes without it are refused: the older ones go on",
    steps: [
      [declare({ CDS: "a@1 b@1", RDS: "r@1" }), []],
      [ask("CDS", ""), ["subscribed CDS *", "send CDS 1: a@1 b@1"]],
      [ask("CDS", "", "1"), ["acked CDS 1: a b"]],
      [ask("RDS", "r"), ["subscribed RDS r", "send RDS 2: r@1"]],
      [ask("RDS", "r", "2"), ["acked RDS 2: r"]],
      [declare({ CDS: "a@1", RDS: "r@2" }), ["send RDS 3: r@2"], 10],
      [ask("RDS", "r", "3", "bad"), ["nacked RDS 3: r@2", "send RDS 4: r@1"], 20],
      [ask("RDS", "r", "4"), ["acked RDS 4: r"], 30],
      [wake, [], 209],
      [wake, ["send CDS 5: a@1"], 210],
    ],
    status: ["CDS STALE", "RDS ERROR"],
  },
  {
    name: "a dropped cluster goes at once if no route changes, and at the latest after removalTimeoutMs",
    steps: [
      [declare({ CDS: "a@1 b@1", RDS: "r@1" }), []],
      [ask("CDS", ""), ["subscribed CDS *", "send CDS 1: a@1 b@1"]],
      [ask("CDS", "", "1"), ["acked CDS 1: a b"]],
      [declare({ CDS: "a@1" }), ["send CDS 2: a@1"]],
      [ask("CDS", "", "2"), ["acked CDS 2: a"]],
      [ask("RDS", "r"), ["subscribed RDS r", "send RDS 3: r@1"], 10],
      [declare({ CDS: "" }), [], 20],
      [wake, [], 219],
      [wake, ["send CDS 4: "], 220],
    ],
    status: ["CDS STALE", "RDS STALE"],
  },
];

for (const { name, steps, status, nextWakeMs } of scripts) {
  test(name, () => {
    const stream = new SotwServerStream({ limits, noncePrefix: "" });
    let nowMs = 0;
    for (const [index, [event, expected, timeMs]] of steps.entries()) {
      nowMs = timeMs ?? nowMs;
      assert.deepEqual(stream.step(event, nowMs).map(show), expected, `step ${index}`);
    }
    const states = [...stream.status().values()].filter(({ state }) => state !== "NOT SENT");
    assert.deepEqual(
      states.map(({ type, state }) => `${type} ${state}`),
      status,
    );
    if (nextWakeMs !== undefined) assert.equal(stream.nextWakeMs(nowMs), nextWakeMs);
  });
}

test("a thousand endpoints are all sent and acknowledged", () => {
  const stream = new SotwServerStream({ limits, noncePrefix: "" });
  const names = Array.from({ length: 1_000 }, (_, index) => `e${index}`);
  stream.step(declare({ EDS: names.map((name) => `${name}@1`).join(" ") }), 0);
  let pending = stream.step(ask("EDS", names.join(" ")), 0);
  let acknowledged = 0;
  while (pending.length > 0) {
    const next: SotwServerAction[] = [];
    for (const action of pending) {
      if (action.kind === "acked") acknowledged += action.acknowledgement.names.length;
      if (action.kind === "send") next.push(...stream.step(ask("EDS", names.join(" "), action.nonce), 0));
    }
    pending = next;
  }
  assert.equal(acknowledged, 1_000);
  assert.equal(stream.status().get("EDS")!.state, "SYNCED");
});
