// Whatever is taken for good by its shape is good: on bytes of every kind, compiled in full it is the same and without
// a problem. And what our own control plane sends is known by its shape when it comes with other texts. And what our
// own control plane sends is known by its shape when it comes with other texts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type DescMessage, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { RouteConfigurationSchema } from "@tulle/xds/envoy/config/route/v3/route_pb";
import { type VirtualHost, VirtualHostSchema } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import fc from "fast-check";
import { goldenRoutes } from "../../../../tests/tools/golden-routes.ts";
import { accepted, fromConfiguration, problemsOf, requestHead } from "../testing/from-configuration.ts";
import { compileEncodedRoutes, compileRouteConfiguration } from "./compile-route-configuration.ts";
import { detachedScope } from "../fields/compile-scope.ts";
import { type TableBuild, compileVirtualHost } from "./compile-virtual-host.ts";
import { runAtOnce } from "@tulle/timing";
import { KnownShapes } from "./known-shapes.ts";
import { Place, Problems } from "../fields/problems.ts";
import { UndecodableError, type VirtualHostSource, encodedSource } from "./route-source.ts";
import { tries } from "../../../../tests/tools/tries.ts";

const scope = detachedScope();

// Messages by hand, for encodings that no encoder writes.
type Bytes = readonly number[];
const textBytes = (text: string): Bytes => [...Buffer.from(text)];
const varint = (value: number): Bytes => (value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)]);

/** A field with a length before it. */
function field(number: number, ...parts: readonly (Bytes | string)[]): Bytes {
  const body = parts.flatMap((part) => (typeof part === "string" ? textBytes(part) : part));
  return [...varint(number * 8 + 2), ...varint(body.length), ...body];
}

const prefixed = (prefix: string): Bytes => field(1, field(1, prefix));
const to = (cluster: string): Bytes => field(2, field(1, cluster));
/** A virtual host of which only the routes are told. */
const host = (...routes: readonly (readonly Bytes[])[]): Bytes => [
  ...field(1, "h"),
  ...field(2, "h"),
  ...routes.flatMap((parts) => field(3, ...parts)),
];

function hostOf(json: object): Uint8Array {
  return toBinary(VirtualHostSchema, fromConfiguration(VirtualHostSchema, { name: "h", domains: ["h"], ...json }));
}

function sourceOf(encoded: Uint8Array): VirtualHostSource {
  const [source] = encodedSource(Uint8Array.from([...varint(18), ...varint(encoded.length), ...encoded])).virtualHosts;
  return source!;
}

interface Outcome {
  readonly name: string;
  readonly domains: readonly string[];
  readonly clusterNames: ReadonlySet<string>;
}

/** Undefined where anything is wrong. */
function compile(encoded: Uint8Array, known: KnownShapes | undefined): Outcome | undefined {
  const problems = new Problems();
  const build: TableBuild = {
    mostSpecificWins: false,
    maxDirectResponseBodyBytes: 4096,
    scope,
    problems,
    level: { request: undefined, response: undefined },
    perFilterConfigs: new Map(),
    clusterExists: undefined,
    known,
  };
  try {
    const { name, domains, clusterNames } = runAtOnce(compileVirtualHost(sourceOf(encoded), build, Place.root));
    return problems.list.length === 0 ? { name, domains, clusterNames: new Set(clusterNames) } : undefined;
  } catch (error) {
    if (!(error instanceof UndecodableError)) throw error;
    return undefined;
  }
}

/** The virtual host taken for good by its shape; fails where it is not. */
function takenForGood(known: KnownShapes, encoded: Uint8Array): Outcome | undefined {
  const quick = known.virtualHost(encoded);
  if (quick !== undefined) assert.deepEqual(quick, compile(encoded, undefined), Buffer.from(encoded).toString("hex"));
  return quick;
}

const longText = "x".repeat(5000);
const long = (count: number, of: (index: number) => Bytes): Bytes[] =>
  Array.from({ length: count }, (_, index) => of(index));

/** typed_per_filter_config, of a filter that nobody knows and that is optional. */
const filterConfig = "type.googleapis.com/envoy.config.route.v3.FilterConfig";
const optional = field(2, field(1, field(1, "type.googleapis.com/no.such")), [0x10, 0x01]);
const unknownFilter = field(13, field(1, "x"), field(2, field(1, filterConfig), optional));

const shapes: readonly {
  readonly name: string;
  readonly learned: Bytes;
  readonly asked: Bytes;
  readonly isKnown: boolean;
}[] = [
  {
    name: "other texts",
    learned: host([prefixed("/a"), to("a"), field(5, field(1, "op")), field(14, "n")]),
    asked: host([prefixed("/bc"), to("bc"), field(5, field(1, "opera")), field(14, "name")]),
    isKnown: true,
  },
  {
    name: "texts long enough for a length of two bytes",
    learned: host([prefixed("/a"), to("a")]),
    asked: host([prefixed(`/${longText}`), to(longText)]),
    isKnown: true,
  },
  {
    name: "another name and domain",
    learned: host([prefixed("/a"), to("a")]),
    asked: [...field(1, "other"), ...field(2, "*.other"), ...field(3, prefixed("/a"), to("a"))],
    isKnown: true,
  },
  {
    name: "more routes of the same shape",
    learned: host([prefixed("/a"), to("a")]),
    asked: host(...Array.from({ length: 32 }, (_, index) => [prefixed(`/${index}`), to(`c${index}`)])),
    isKnown: true,
  },
  {
    name: "more routes than are compiled late",
    learned: host([prefixed("/a"), to("a")]),
    asked: host(...Array.from({ length: 33 }, (_, index) => [prefixed(`/${index}`), to(`c${index}`)])),
    isKnown: false,
  },
  { name: "no route", learned: host(), asked: [...field(1, "i"), ...field(2, "i")], isKnown: true },
  {
    name: "routes before the name",
    learned: host([prefixed("/a"), to("a")]),
    asked: [...field(3, prefixed("/b"), to("b")), ...field(1, "i"), ...field(2, "i")],
    isKnown: true,
  },
  {
    name: "more domains",
    learned: host(),
    asked: [...field(1, "h"), ...field(2, "h"), ...field(2, "i")],
    isKnown: false,
  },
  {
    name: "more texts than are noted",
    learned: [...field(1, "h"), ...long(64, () => field(2, "h")).flat()],
    asked: [...field(1, "h"), ...long(64, () => field(2, "h")).flat()],
    isKnown: false,
  },
  {
    name: "a domain that is called as its host, before the name",
    learned: [...field(2, "h"), ...field(1, "h")],
    asked: [...field(2, "domain"), ...field(1, "name")],
    isKnown: false,
  },
  {
    name: "a name twice",
    learned: [...field(1, "h"), ...field(1, "h"), ...field(2, "h")],
    asked: [...field(1, "g"), ...field(1, "h"), ...field(2, "h")],
    isKnown: false,
  },
  { name: "an empty name", learned: host(), asked: [...field(1, ""), ...field(2, "h")], isKnown: false },
  {
    name: "an empty cluster",
    learned: host([prefixed("/a"), to("a")]),
    asked: host([prefixed("/a"), to("")]),
    isKnown: false,
  },
  {
    name: "a query in a prefix",
    learned: host([prefixed("/a?b"), to("a")]),
    asked: host([prefixed("/a/"), to("a")]),
    isKnown: true,
  },
  ...["/", "/a/", "/a?b", "/a#b", ""].map((prefix) => ({
    name: `path_separated_prefix '${prefix}'`,
    learned: host([field(1, field(14, "/a")), to("a")]),
    asked: host([field(1, field(14, prefix)), to("a")]),
    isKnown: false,
  })),
  {
    name: "a text that is no ASCII",
    learned: host([prefixed("/a"), to("a")]),
    asked: host([prefixed("/a"), to("é")]),
    isKnown: false,
  },
  {
    name: "a text that is no UTF-8",
    learned: host([prefixed("/a"), to("a")]),
    asked: host([prefixed("/a"), field(2, field(1, [0xff]))]),
    isKnown: false,
  },
  {
    name: "a control character",
    learned: host([prefixed("/a"), to("a")]),
    asked: host([prefixed("/a"), to("a\n")]),
    isKnown: false,
  },
  {
    name: "a prefix, then a path",
    learned: host([field(1, field(1, "/a"), field(2, "/b")), to("a")]),
    asked: host([field(1, field(1, "/b"), field(2, "/a")), to("a")]),
    isKnown: false,
  },
  {
    name: "a cluster twice",
    learned: host([prefixed("/a"), field(2, field(1, "a"), field(1, "a"))]),
    asked: host([prefixed("/a"), field(2, field(1, "b"), field(1, "c"))]),
    isKnown: false,
  },
  {
    name: "a cluster, then a header that names one",
    learned: host([prefixed("/a"), field(2, field(1, "a"), field(2, "x-cluster"))]),
    asked: host([prefixed("/a"), field(2, field(1, "b"), field(2, "x-cluster"))]),
    isKnown: false,
  },
  {
    name: "a cluster, then the same as one of several",
    learned: host([prefixed("/a"), field(2, field(1, "a"), field(3, field(1, field(1, "a"), field(2, [8, 1]))))]),
    asked: host([prefixed("/a"), field(2, field(1, "b"), field(3, field(1, field(1, "a"), field(2, [8, 1]))))]),
    isKnown: false,
  },
  {
    name: "an action, then another one",
    learned: host([prefixed("/a"), to("a"), field(3)]),
    asked: host([prefixed("/a"), to("b"), field(3)]),
    isKnown: false,
  },
  {
    name: "several clusters",
    learned: host([prefixed("/a"), field(2, field(3, field(1, field(1, "a"), field(2, [8, 1]))))]),
    asked: host([prefixed("/b"), field(2, field(3, field(1, field(1, "a"), field(2, [8, 1]))))]),
    isKnown: true,
  },
  {
    name: "other clusters among several",
    learned: host([prefixed("/a"), field(2, field(3, field(1, field(1, "a"), field(2, [8, 1]))))]),
    asked: host([prefixed("/a"), field(2, field(3, field(1, field(1, "b"), field(2, [8, 1]))))]),
    isKnown: false,
  },
  {
    name: "a match in two parts",
    learned: host([prefixed("/a"), prefixed("/a"), to("a")]),
    asked: host([prefixed("/a"), prefixed("/b"), to("a")]),
    isKnown: false,
  },
  {
    name: "an action in two parts",
    learned: host([prefixed("/a"), to("a"), to("a")]),
    asked: host([prefixed("/a"), to("a"), to("b")]),
    isKnown: false,
  },
  {
    name: "a length written longer than it need be",
    learned: host([prefixed("/a"), to("a")]),
    asked: host([prefixed("/a"), [0x12, 0x86, 0x80, 0x00, 0x0a, 0x83, 0x00, ...textBytes("abc")]]),
    isKnown: true,
  },
  {
    name: "a tag written longer than it need be",
    learned: host([prefixed("/a"), to("a")]),
    asked: host([prefixed("/a"), [0x92, 0x00, 0x03, 0x0a, 0x01, 0x61]]),
    isKnown: false,
  },
  {
    name: "a tag of five bytes",
    learned: host([prefixed("/a"), to("a")]),
    asked: host([prefixed("/a"), [0x92, 0x80, 0x80, 0x80, 0x00, 0x03, 0x0a, 0x01, 0x61]]),
    isKnown: false,
  },
  {
    name: "a field that is newer than this proxy, which is warned of each time",
    learned: host([prefixed("/a"), to("a"), field(33, "unknown")]),
    asked: host([prefixed("/b"), to("b"), field(33, "unknown")]),
    isKnown: false,
  },
  {
    name: "a group",
    learned: host([prefixed("/a"), to("a"), [0x83, 0x02, 0x84, 0x02]]),
    asked: host([prefixed("/a"), to("a"), [0x83, 0x02, 0x84, 0x02]]),
    isKnown: false,
  },
  {
    name: "a number in the place of a text",
    learned: host([prefixed("/a"), to("a"), [0x70, 0x01, 0x61]]),
    asked: host([prefixed("/a"), to("a"), [0x70, 0x01, 0x61]]),
    isKnown: false,
  },
  {
    // protobuf-es looks at no wire type of a field that it knows: it reads runtime_fraction's number as a length, and
    // the prefix in it.
    name: "a number in the place of a message, which takes in the text behind it",
    learned: host([field(1, field(2, "/a"), [0x48, 4], field(1, " !")), to("a")]),
    asked: host([field(1, field(2, "/a"), [0x48, 4], field(1, "''")), to("a")]),
    isKnown: false,
  },
  {
    name: "a message that reaches beyond its end, into a text",
    learned: host([field(1, field(2, "/a"), field(9, [0x0a, 4]), field(1, " !")), to("a")]),
    asked: host([field(1, field(2, "/a"), field(9, [0x0a, 4]), field(1, "''")), to("a")]),
    isKnown: false,
  },
  {
    name: "a field in the match, and the same behind it",
    learned: host([field(1, field(1, "/a"), field(33)), to("a")]),
    asked: host([prefixed("/a"), field(33), to("a")]),
    isKnown: false,
  },
  {
    name: "a route under the tag of a number",
    learned: host([prefixed("/a"), to("a")]),
    asked: [...host(), 0x18, 11, ...prefixed("/a"), ...to("a")],
    isKnown: false,
  },
  {
    name: "a number of eleven bytes",
    learned: host([prefixed("/a"), to("a"), [0x88, 0x02, ...Array<number>(10).fill(0x80), 0x00]]),
    asked: host([prefixed("/a"), to("a"), [0x88, 0x02, ...Array<number>(10).fill(0x80), 0x00]]),
    isKnown: false,
  },
  {
    name: "a shape too long to be kept",
    learned: host([prefixed("/a"), to("a"), field(33, longText)]),
    asked: host([prefixed("/a"), to("a"), field(33, longText)]),
    isKnown: false,
  },
  {
    name: "a body from a file",
    learned: host([prefixed("/a"), field(7, [0x08, 0xc8, 0x01], field(2, field(1, import.meta.filename)))]),
    asked: host([prefixed("/a"), field(7, [0x08, 0xc8, 0x01], field(2, field(1, import.meta.filename)))]),
    isKnown: false,
  },
  {
    name: "a route with a warning",
    learned: host([prefixed("/a"), to("a"), unknownFilter]),
    asked: host([prefixed("/b"), to("b"), unknownFilter]),
    isKnown: false,
  },
];

for (const { name, learned, asked, isKnown } of shapes) {
  test(`${isKnown ? "known" : "not known"} by its shape: ${name}`, () => {
    const known = new KnownShapes();
    compile(Uint8Array.from(learned), known);
    assert.equal(takenForGood(known, Uint8Array.from(asked)) !== undefined, isKnown);
  });
}

/** An encoded message in its fields; those that are messages, in theirs. */
interface Part {
  tag: Bytes;
  /** False: what stands behind the tag is `body`, a number. */
  hasLength: boolean;
  body: Bytes | Part[];
}

const isTree = (body: Bytes | Part[]): body is Part[] => typeof body[0] === "object";

function partsOf(encoded: Uint8Array, schema: DescMessage | undefined): Part[] {
  const reader = new BinaryReader(encoded);
  const parts: Part[] = [];
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    const tag = varint(number * 8 + wireType);
    if (wireType !== WireType.LengthDelimited) {
      parts.push({ tag, hasLength: false, body: [...reader.skip(wireType, number)] });
      continue;
    }
    const known = schema?.fields.find((candidate) => candidate.number === number);
    const of = known?.fieldKind === "map" ? undefined : known?.message;
    const body = reader.bytes();
    parts.push({ tag, hasLength: true, body: of === undefined ? [...body] : partsOf(body, of) });
  }
  return parts;
}

function encode(parts: readonly Part[]): Bytes {
  return parts.flatMap(({ tag, hasLength, body }) => {
    const bytes = isTree(body) ? encode(body) : body;
    return [...tag, ...(hasLength ? varint(bytes.length) : []), ...bytes];
  });
}

/** Every list of fields in the tree. */
function listsIn(parts: Part[]): Part[][] {
  return [parts, ...parts.flatMap(({ body }) => (isTree(body) ? listsIn(body) : []))];
}

interface Change {
  readonly kind: "text" | "bytes" | "number" | "repeat" | "swap" | "drop" | "retag";
  readonly list: number;
  readonly at: number;
  readonly text: string;
  readonly other: number;
}

function change(root: Part[], { kind, list: listIndex, at: index, text, other }: Change): void {
  const lists = listsIn(root).filter((candidate) => candidate.length > 0);
  if (lists.length === 0) return;
  const list = lists[listIndex % lists.length]!;
  const at = index % list.length;
  const part = list[at]!;
  if (kind === "text" && part.hasLength && !isTree(part.body)) part.body = textBytes(text);
  if (kind === "bytes") [part.hasLength, part.body] = [true, [0x0a, other % 8, ...textBytes(text)]];
  if (kind === "number") {
    part.tag = varint((part.tag[0]! >> 3) * 8);
    [part.hasLength, part.body] = [false, [other % 16]];
  }
  if (kind === "repeat") list.splice(other % (list.length + 1), 0, structuredClone(part));
  if (kind === "swap") [list[at], list[other % list.length]] = [list[other % list.length]!, part];
  if (kind === "drop") list.splice(at, 1);
  if (kind === "retag") part.tag = varint((1 + (other % 16)) * 8 + (part.tag[0]! & 7));
}

const someText = fc.oneof(
  fc.constantFrom("a", "b", "/a", "/b/", "/a?b", " !", "''", "", "é", "\n", "x".repeat(130)),
  fc.string({ maxLength: 6 }),
);
const cluster = fc.constantFrom("a", "b", "c");
const path = fc.constantFrom("/", "/a", "/a/b", "/b/", "/a?b");
const forward = fc.oneof(
  cluster.map((name) => ({ cluster: name })),
  fc.array(cluster, { minLength: 1, maxLength: 2 }).map((names) => ({
    weighted_clusters: { clusters: names.map((name) => ({ name, weight: 1 })) },
  })),
  fc.constant({ cluster_header: "x-cluster" }),
);
const someRoute = fc
  .record({
    match: fc.oneof(
      path.map((prefix) => ({ prefix })),
      path.map((exact) => ({ path: exact, case_sensitive: false })),
      path.map((prefix) => ({ path_separated_prefix: prefix, headers: [{ name: "x-a", present_match: true }] })),
    ),
    action: fc.oneof(
      fc
        .tuple(
          forward,
          fc.constantFrom({}, { timeout: "1s" }, { retry_policy: { num_retries: 2 } }, { prefix_rewrite: "/c" }),
        )
        .map(([chosen, extra]) => ({ route: { ...chosen, ...extra } })),
      fc.constantFrom({ redirect: { host_redirect: "h" } }, { direct_response: { status: 200 } }),
    ),
    rest: fc.constantFrom(
      {},
      { name: "n" },
      { name: "n", decorator: { operation: "o" } },
      { metadata: { filter_metadata: { m: { k: "v" } } } },
      { request_headers_to_add: [{ header: { key: "x-a", value: "1" } }] },
    ),
  })
  .map(({ match, action, rest }) => ({ match, ...action, ...rest }));
const someChange: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom("text", "text", "bytes", "number", "repeat", "swap", "drop", "retag"),
  list: fc.nat(30),
  at: fc.nat(10),
  text: someText,
  other: fc.nat(100),
});
const textChange = someChange.map((one): Change => ({ ...one, kind: "text" }));

test("whatever bytes are learned and asked for, what is taken for good is good", () => {
  let taken = 0;
  fc.assert(
    fc.property(
      fc.array(someRoute, { maxLength: 3 }),
      fc.array(someChange, { maxLength: 3 }),
      fc.array(textChange, { maxLength: 3 }),
      fc.array(fc.tuple(fc.nat(200), fc.nat(255), fc.constantFrom("set", "insert", "cut")), { maxLength: 2 }),
      (routes, changes, texts, flips) => {
        const parts = partsOf(hostOf({ routes }), VirtualHostSchema);
        const known = new KnownShapes();
        compile(Uint8Array.from(encode(parts)), known);
        for (const one of changes) change(parts, one);
        const changed = Uint8Array.from(encode(parts));
        takenForGood(known, changed);
        compile(changed, known);
        for (const one of texts) change(parts, one);
        const asked = [...encode(parts)];
        if (takenForGood(known, Uint8Array.from(asked)) !== undefined) taken += 1;
        for (const [at, byte, kind] of flips) {
          if (kind === "set") asked[at % asked.length] = byte;
          else if (kind === "insert") asked.splice(at % (asked.length + 1), 0, byte);
          else asked.length = Math.min(asked.length, at);
          takenForGood(known, Uint8Array.from(asked));
        }
      },
    ),
    { numRuns: tries({ short: 500, long: 3000 }), seed: 20_261_120 },
  );
  assert.ok(taken > tries({ short: 30, long: 300 }), `only ${taken} were known`);
});

const tables: readonly { readonly name: string; readonly next: object }[] = [
  { name: "the same", next: {} },
  { name: "a warning", next: { tracing: {} } },
  { name: "an error", next: { route: { cluster: "b", cors: {} } } },
];

const tableOf = (...routes: readonly object[]): Uint8Array =>
  toBinary(
    RouteConfigurationSchema,
    fromConfiguration(RouteConfigurationSchema, {
      name: "r",
      virtual_hosts: [
        { name: "first", domains: ["first"], routes: [{ match: { prefix: "/f" }, route: { cluster: "f" } }] },
        { name: "second", domains: ["second"], routes },
      ],
    }),
  );

for (const { name, next } of tables) {
  test(`after a table before, problems are those of the table alone: ${name}`, async () => {
    const good = { match: { prefix: "/a" }, route: { cluster: "a" } };
    const bytes = tableOf({ ...good, ...next }, { match: { prefix: "/b" }, route: { cluster: "b" } });
    const alone = await compileEncodedRoutes(bytes, scope);
    const once = accepted(await compileEncodedRoutes(tableOf(good), scope));
    const after = await compileEncodedRoutes(bytes, scope, { previous: once });
    assert.deepEqual(problemsOf(after), problemsOf(alone));
    const inline = compileRouteConfiguration(fromBinary(RouteConfigurationSchema, bytes), scope);
    assert.deepEqual(problemsOf(after), problemsOf(inline));
    if (!after.ok) return;
    const again = await compileEncodedRoutes(bytes, scope, { previous: after.value });
    assert.deepEqual(problemsOf(again), problemsOf(alone));
    assert.deepEqual(accepted(again).clusterNames, accepted(inline).clusterNames);
    assert.equal(after.value.match(requestHead({ authority: "second", path: "/b" }), () => 0)?.action.type, "forward");
  });
}

/**
 * Every text that belongs to no shape, another one of the same kind; and whether one of them is none that may differ.
 */
function changeTexts(virtualHost: VirtualHost): { readonly hasOddText: boolean } {
  let hasOddText = false;
  const other = (text: string): string => {
    if (!/^[ -~]+$/.test(text)) hasOddText = true;
    return text.endsWith("/") ? `${text}x/` : `${text}x`;
  };
  virtualHost.name = other(virtualHost.name);
  virtualHost.domains = virtualHost.domains.map(other);
  for (const values of Object.values(virtualHost.metadata?.filterMetadata ?? {})) {
    for (const [key, value] of Object.entries(values)) if (typeof value === "string") values[key] = other(value);
  }
  for (const route of virtualHost.routes) {
    const { match, action, decorator } = route;
    if (route.name !== "") route.name = other(route.name);
    const specifier = match?.pathSpecifier;
    if (specifier?.case === "prefix" || specifier?.case === "path" || specifier?.case === "pathSeparatedPrefix") {
      specifier.value = other(specifier.value);
    }
    if (action.case === "route" && action.value.clusterSpecifier.case === "cluster") {
      action.value.clusterSpecifier.value = other(action.value.clusterSpecifier.value);
    }
    if (decorator !== undefined) decorator.operation = other(decorator.operation);
  }
  return { hasOddText };
}

for (const { name, routes } of await goldenRoutes()) {
  test(`what the control plane sends is known when it comes with other texts: ${name}`, () => {
    for (const { virtualHosts } of routes.map((bytes) => fromBinary(RouteConfigurationSchema, bytes))) {
      for (const virtualHost of virtualHosts) {
        const known = new KnownShapes();
        compile(toBinary(VirtualHostSchema, virtualHost), known);
        const { hasOddText } = changeTexts(virtualHost);
        const next = takenForGood(known, toBinary(VirtualHostSchema, virtualHost));
        assert.equal(next !== undefined, !hasOddText, virtualHost.name);
      }
    }
  });
}
