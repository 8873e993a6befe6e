// What each field of Telemetry about traces and access logs does, through real proxies of both kinds: a pod's own
// calls to itself pass its proxy as a client and as a server. Metrics are Tulle's alone: Envoy skips the filter.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import http from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { kindDefinitions, type Node } from "@tulle/config";
import { TraceCollector } from "../../packages/proxy/src/testing/trace-collector.ts";
import { MeshedProxies, type ProxyKind } from "../tools/meshed-proxies.ts";
import { waitFor } from "../tools/processes.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];
const outboundPort = 15_007;

/** What one call has left, by side. */
interface Seen {
  /** Lines of the log `told`, without the row's name. */
  readonly log: readonly string[];
  /** Kinds of spans. */
  readonly spans: readonly string[];
  /** Tags of the server's span, or of the client's where there is none. */
  readonly tags: Readonly<Record<string, unknown>>;
  /** Headers that the application got. */
  readonly headers: http.IncomingHttpHeaders;
}

interface Row {
  readonly name: string;
  /** Below `spec`, as the schema has them. */
  readonly fields: readonly string[];
  readonly spec: object;
  /** Path and headers of the call. */
  readonly call?: { readonly path?: string; readonly headers?: Readonly<Record<string, string>> };
  readonly holds: (seen: Seen) => boolean;
}

const all = { providers: [{ name: "collector" }], randomSamplingPercentage: 100 };
const tracing = (...entries: readonly object[]): object => ({ tracing: [all, ...entries] });
const logging = (...entries: readonly object[]): object => ({ accessLogging: entries });
const told = { providers: [{ name: "told" }] };
const both = (list: readonly string[]): boolean => String([...list].sort()) === "CLIENT,SERVER";
const only =
  (side: string) =>
  (list: readonly string[]): boolean =>
    String(list) === side;
const tagged =
  (name: string, value: unknown) =>
  (seen: Seen): boolean =>
    seen.tags[name] === value;

const rows: readonly Row[] = [
  {
    name: "traces: a provider, and how many requests",
    fields: ["tracing", "tracing.[].providers", "tracing.[].providers.[].name", "tracing.[].randomSamplingPercentage"],
    spec: tracing(),
    holds: ({ spans }) => both(spans),
  },
  {
    name: "traces: one side alone",
    fields: ["tracing.[].match", "tracing.[].match.mode", "tracing.[].disableSpanReporting"],
    spec: tracing({ match: { mode: "CLIENT" }, disableSpanReporting: true }),
    holds: ({ spans }) => only("SERVER")(spans),
  },
  {
    name: "traces: tags",
    fields: [
      "tracing.[].customTags",
      "tracing.[].customTags.{}.literal",
      "tracing.[].customTags.{}.literal.value",
      "tracing.[].customTags.{}.header",
      "tracing.[].customTags.{}.header.name",
      "tracing.[].customTags.{}.header.defaultValue",
      "tracing.[].customTags.{}.environment",
      "tracing.[].customTags.{}.environment.name",
      "tracing.[].customTags.{}.environment.defaultValue",
      "tracing.[].customTags.{}.formatter",
      "tracing.[].customTags.{}.formatter.value",
    ],
    spec: tracing({
      customTags: {
        a: { literal: { value: "one" } },
        b: { header: { name: "x-b" } },
        c: { header: { name: "x-c", defaultValue: "none" } },
        d: { environment: { name: "TULLE_PEER_METADATA" } },
        e: { environment: { name: "NOT_SET", defaultValue: "unset" } },
        f: { formatter: { value: "%REQ(:METHOD)% %PROTOCOL%" } },
      },
    }),
    call: { headers: { "x-b": "two" } },
    holds: ({ tags }) =>
      tags["a"] === "one" &&
      tags["b"] === "two" &&
      tags["c"] === "none" &&
      String(tags["d"]).startsWith("of server-") &&
      tags["e"] === "unset" &&
      String(tags["f"]).startsWith("GET HTTP/"),
  },
  {
    name: "traces: Istio's tags",
    fields: [],
    spec: tracing(),
    holds: tagged("istio.namespace", "shop"),
  },
  {
    name: "traces: no secret of a query, and the revision of the routes",
    fields: [],
    spec: tracing(),
    call: { path: "/path?code=secret" },
    holds: ({ tags }) =>
      /:3000\/path(\?code=redacted)?$/.test(String(tags["http.url"])) &&
      /^\w{8,}$/.test(String(tags["tulle.config.revision"])),
  },
  {
    name: "traces: none of Istio's tags",
    fields: ["tracing.[].enableIstioTags"],
    spec: tracing({ enableIstioTags: false }),
    holds: (seen) => both(seen.spans) && tagged("istio.namespace", undefined)(seen),
  },
  {
    name: "traces: X-Request-Id tells that the request is traced",
    fields: [],
    spec: tracing(),
    holds: ({ headers }) => String(headers["x-request-id"]).charAt(14) === "9",
  },
  {
    name: "traces: X-Request-Id tells nothing",
    fields: ["tracing.[].useRequestIdForTraceSampling"],
    spec: tracing({ useRequestIdForTraceSampling: false }),
    holds: ({ headers, spans }) => spans.length > 0 && String(headers["x-request-id"]).charAt(14) === "4",
  },
  {
    name: "traces: headers stay as they are",
    fields: ["tracing.[].disableContextPropagation"],
    spec: tracing({ disableContextPropagation: true }),
    holds: ({ headers, spans }) => spans.length > 0 && headers["traceparent"] === undefined,
  },
  {
    name: "logs: a provider",
    fields: ["accessLogging", "accessLogging.[].providers", "accessLogging.[].providers.[].name"],
    spec: logging(told),
    holds: ({ log }) => both(log),
  },
  {
    name: "logs: one side alone",
    fields: ["accessLogging.[].match", "accessLogging.[].match.mode"],
    spec: logging({ ...told, match: { mode: "SERVER" } }),
    holds: ({ log }) => only("SERVER")(log),
  },
  {
    name: "logs: not the other side",
    fields: ["accessLogging.[].disabled"],
    spec: logging(told, { match: { mode: "SERVER" }, disabled: true }),
    holds: ({ log }) => only("CLIENT")(log),
  },
  {
    name: "logs: a filter that holds",
    fields: [],
    spec: logging({ ...told, filter: { expression: "request.url_path.startsWith('/yes')" } }),
    call: { path: "/yes?a=b" },
    holds: ({ log }) => both(log),
  },
  {
    name: "logs: a filter that does not hold on one side",
    fields: ["accessLogging.[].filter", "accessLogging.[].filter.expression"],
    spec: logging(told, {
      ...told,
      match: { mode: "SERVER" },
      filter: { expression: "request.headers['x-b'] == 'no' || response.code >= 400" },
    }),
    call: { headers: { "x-b": "two" } },
    holds: ({ log }) => only("CLIENT")(log),
  },
  {
    name: "for workloads by label",
    fields: ["selector", "selector.matchLabels"],
    spec: { selector: { matchLabels: { tier: "front" } }, ...logging({ ...told, match: { mode: "SERVER" } }) },
    holds: ({ log }) => only("SERVER")(log),
  },
  ...(["targetRef", "targetRefs"] as const).map((name): Row => {
    const target = { group: "gateway.networking.k8s.io", kind: "Gateway", name: "edge" };
    const at = name === "targetRef" ? name : `${name}.[]`;
    return {
      name: `for a Gateway by ${name}`,
      fields: [name, ...["group", "kind", "name"].map((field) => `${at}.${field}`)],
      spec: {
        [name]: name === "targetRef" ? target : [target],
        ...logging({ ...told, match: { mode: "CLIENT" } }),
      },
      holds: ({ log }) => only("CLIENT")(log),
    };
  }),
];

/** Of no effect on anything. */
const withoutEffect = new Set(["targetRef.namespace", "targetRefs.[].namespace"]);

test("every field of traces, logs and targets has a row", () => {
  const { spec } = (kindDefinitions.Telemetry.schema.node as Extract<Node, { type: "object" }>).fields;
  const below = (node: Node, at: readonly string[]): readonly string[] => {
    if (node.type === "list") return below(node.items, [...at, "[]"]);
    if (node.type === "map") return below(node.values, [...at, "{}"]);
    if (node.type !== "object") return [];
    return Object.entries(node.fields).flatMap(([name, field]) => [
      [...at, name].join("."),
      ...below(field.node, [...at, name]),
    ]);
  };
  const fields = below(spec!.node, []).filter((each) => !each.startsWith("metrics") && !withoutEffect.has(each));
  const shown = new Set(rows.flatMap((row) => row.fields));
  assert.deepEqual(
    fields.filter((field) => !shown.has(field)),
    [],
  );
});

describe("what each field of Telemetry does", () => {
  const collector = new TraceCollector();
  let mesh: MeshedProxies;
  let logFile: string;
  let settings: string;

  before(
    async () => {
      const folder = temporaryFolder("tulle-telemetry-");
      logFile = path.join(folder, "told.log");
      const { httpPort } = await collector.start();
      const service = "127.0.0.1";
      const text = "%REQ(X-ROW)% %UPSTREAM_CLUSTER_RAW%";
      settings = JSON.stringify({
        extensionProviders: [
          { name: "collector", opentelemetry: { service, port: httpPort, http: { path: "/v1/traces" } } },
          { name: "told", envoyFileAccessLog: { path: logFile, logFormat: { text } } },
        ],
      });
      mesh = await MeshedProxies.start({
        pods: kinds.map((proxy) => ({
          name: `server-${proxy}`,
          namespace: "shop",
          proxy,
          labels: { tier: "front", "gateway.networking.k8s.io/gateway-name": "edge" },
        })),
        ports: [3000],
        manifests: manifests({}),
      });
    },
    { timeout: 120_000 },
  );
  after(async () => {
    await mesh?.[Symbol.asyncDispose]();
    collector.close();
  });

  function manifests(spec: object): string {
    const map = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "tulle", namespace: "tulle-system" },
      data: { mesh: settings },
    };
    const telemetry = {
      apiVersion: "telemetry.istio.io/v1",
      kind: "Telemetry",
      metadata: { name: "row", namespace: "shop" },
      spec,
    };
    return [map, telemetry].map((each) => JSON.stringify(each)).join("\n---\n");
  }

  let calls = 0;

  /** Through the pod's proxy to the pod itself, and all that it has left once something has come. */
  async function seenBy(kind: ProxyKind, { call = {} }: Row): Promise<() => Promise<Seen>> {
    const name = `row-${(calls += 1)}`;
    const { address } = mesh.pod(`server-${kind}`);
    const url = `http://server-${kind}.shop.svc.cluster.local:3000${call.path ?? "/"}`;
    const body = await new Promise<string>((resolve, reject) => {
      const request = http.request({
        host: address,
        port: outboundPort,
        path: url,
        headers: { ...call.headers, host: new URL(url).host, "x-row": name, "user-agent": name },
        agent: false,
      });
      request.once("error", reject).once("response", (response) => {
        const chunks: Buffer[] = [];
        response
          .on("data", (chunk: Buffer) => chunks.push(chunk))
          .once("end", () => resolve(String(Buffer.concat(chunks))));
      });
      request.end();
    });
    const { headers } = JSON.parse(body) as { headers: http.IncomingHttpHeaders };
    const sideOf = (cluster: string): string => (cluster.startsWith("outbound") ? "CLIENT" : "SERVER");
    return async () => {
      const text = await readFile(logFile, "utf8").catch(() => "");
      const lines = text.split("\n").map((line) => line.split(" "));
      const spans = collector.spans.filter(({ attributes }) => attributes["user_agent"] === name);
      const sides = spans.map(({ attributes }) => sideOf(String(attributes["upstream_cluster.name"])));
      const server = spans[Math.max(0, sides.indexOf("SERVER"))];
      const log = lines.filter(([row]) => row === name).map(([, cluster = ""]) => sideOf(cluster));
      return { log, spans: sides, tags: server?.attributes ?? {}, headers };
    };
  }

  for (const row of rows) {
    for (const kind of kinds) {
      test(`${row.name}: ${kind}`, async () => {
        await mesh.setManifests(manifests(row.spec));
        const readers: (() => Promise<Seen>)[] = [];
        let last: readonly Seen[] = [];
        // The first calls may be before the change, and spans leave by fives.
        const holds = async (): Promise<boolean> => {
          readers.push(...(await Promise.all(Array.from({ length: 3 }, () => seenBy(kind, row)))));
          last = await Promise.all(readers.map((read) => read()));
          return last.some((seen) => row.holds(seen));
        };
        await waitFor(holds, { what: row.name, intervalMs: 200, details: () => JSON.stringify(last.slice(-2)) });
      });
    }
  }
});
