// Trace headers by the thousand, sound ones and mutations of them, some of them twice, over HTTP/1.1 and HTTP/2: what
// goes on to the host is always sound, and where what came was sound, it is what a stock Envoy sends on.
import assert from "node:assert/strict";
import http from "node:http";
import { after, before, suite, test } from "node:test";
import fc from "fast-check";
import { connectionManager, http2Options, loopback, staticCluster } from "../testing/envoy-json.ts";
import { clients, type Sides, startSides } from "../testing/parity-pair.ts";
import { TraceCollector } from "../testing/trace-collector.ts";
import { openTelemetry, zipkin } from "../testing/tracing-stage.ts";

const callsOfEach = 1000;
const seed = 20_261_126;
const names = ["traceparent", "tracestate", "b3", "x-b3-traceid", "x-b3-spanid", "x-b3-sampled"] as const;
type Told = Readonly<Partial<Record<(typeof names)[number], readonly string[]>>>;
type Sent = Readonly<Record<string, readonly string[]>>;

const hex = (length: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...Array.from("0123456789abcdef")), minLength: length, maxLength: length });
/** Once in a while a character is another, one more or one less. */
const mutated = (text: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .tuple(
      text,
      fc.nat(),
      fc.constantFrom(...Array.from("-0gZ,;=.f_%")),
      fc.constantFrom("kept", "kept", "other", "more", "less"),
    )
    .map(([value, place, character, how]) => {
      const at = place % Math.max(1, value.length);
      if (how === "kept") return value;
      return value.slice(0, at) + (how === "less" ? "" : character) + value.slice(how === "more" ? at : at + 1);
    });
const oneOrTwo = (text: fc.Arbitrary<string>): fc.Arbitrary<readonly string[]> =>
  fc.oneof({ weight: 9, arbitrary: fc.tuple(mutated(text)) }, { weight: 1, arbitrary: fc.tuple(text, mutated(text)) });

const ids = fc.tuple(hex(32), hex(16));
const version = fc.constantFrom("00", "00", "00", "01", "cc", "ff", "0");
const flags = fc.constantFrom("00", "01", "01", "02", "03", "ff", "1");
const traceparent = fc
  .tuple(version, ids, flags)
  .map(([first, [trace, span], last]) => `${first}-${trace}-${span}-${last}`);
const member = fc.tuple(hex(3), hex(8)).map(([key, value]) => `k${key}=${value}`);
const tracestate = fc.array(member, { maxLength: 40 }).map((members) => members.join(","));
const b3 = fc.oneof(
  fc.constantFrom("0", "1", "d"),
  fc
    .tuple(ids, fc.constantFrom("", "-0", "-1", "-d"))
    .map(([[trace, span], decision]) => `${trace}-${span}${decision}`),
);
const sent: fc.Arbitrary<Sent> = fc.record(
  {
    traceparent: oneOrTwo(traceparent),
    tracestate: oneOrTwo(tracestate),
    b3: oneOrTwo(b3),
    "x-b3-traceid": oneOrTwo(hex(16)),
  },
  { requiredKeys: [] },
);

const soundParent = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const soundB3 = /^(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}(-[01d])?$/;

function bootstrap(
  appPort: number,
  { httpPort, grpcPort }: { readonly httpPort: number; readonly grpcPort: number },
): string {
  const listener = (name: string, provider: object): object => {
    const tracing = { provider, random_sampling: { value: 100 } };
    const typed_config = connectionManager([{ match: { prefix: "/" }, route: { cluster: "app" } }], { tracing });
    const filters = [{ name: "envoy.filters.network.http_connection_manager", typed_config }];
    return { name, address: loopback(0), filter_chains: [{ filters }] };
  };
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      listeners: [listener("otlp", openTelemetry()), listener("zipkin", zipkin())],
      clusters: [
        staticCluster("app", [appPort]),
        staticCluster("http_collector", [httpPort]),
        staticCluster("collector", [grpcPort], { typed_extension_protocol_options: http2Options }),
      ],
    },
  });
}

suite("trace headers", () => {
  const collector = new TraceCollector();
  let sides: Sides;
  before(async () => {
    const ports = await collector.start();
    const host = http.createServer(({ headersDistinct }, response) => {
      response.end(JSON.stringify(Object.fromEntries(names.map((name) => [name, headersDistinct[name]]))));
    });
    sides = await startSides(host, 2, (appPort) => bootstrap(appPort, ports));
  });
  after(async () => {
    await sides.stop();
    collector.close();
  });

  const ask = async (side: "ours" | "envoy", listener: string, headers: Sent, index: number): Promise<Told> => {
    const client = clients[index % 4 === 0 ? "HTTP/2" : "HTTP/1.1"];
    const answer = await client(sides[side].ports.get(listener)!, { listener, headers });
    assert.equal(answer.status, 200, JSON.stringify(headers));
    return JSON.parse(answer.body) as Told;
  };

  test("W3C's", async () => {
    for (const [index, headers] of fc.sample(sent, { numRuns: callsOfEach, seed }).entries()) {
      const ours = await ask("ours", "otlp", headers, index);
      const what = JSON.stringify({ headers, ours });
      assert.equal(ours.traceparent?.length, 1, what);
      assert.match(ours.traceparent[0]!, soundParent, what);
      const [parent, second] = headers["traceparent"] ?? [];
      if (parent === undefined || second !== undefined || !soundParent.test(parent)) continue;
      const envoys = await ask("envoy", "otlp", headers, index);
      const traceAndFlags = ({ traceparent: told }: Told) => told?.[0]?.replace(/-[0-9a-f]{16}-/, "-");
      assert.equal(traceAndFlags(ours), traceAndFlags(envoys), what);
      assert.ok(ours.traceparent[0]!.includes(parent.slice(3, 35)), what);
    }
  });

  test("B3", async () => {
    for (const [index, headers] of fc.sample(sent, { numRuns: callsOfEach, seed: seed + 1 }).entries()) {
      const ours = await ask("ours", "zipkin", headers, index);
      const what = JSON.stringify({ headers, ours });
      const [single, second] = headers["b3"] ?? [];
      if (single === undefined) {
        assert.match(ours["x-b3-traceid"]?.join() ?? "", /^([0-9a-f]{16}|[0-9a-f]{32})$/, what);
        continue;
      }
      assert.match(ours.b3?.join() ?? "", /^[0-9a-f]{16,32}-[0-9a-f]{16}-[01](-[0-9a-f]{16})?$/, what);
      if (second !== undefined || !soundB3.test(single)) continue;
      const envoys = await ask("envoy", "zipkin", headers, index);
      assert.deepEqual(ours.b3, envoys.b3, what);
    }
  });
});
