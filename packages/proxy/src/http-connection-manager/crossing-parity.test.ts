// What crosses from a client to a host when each speaks HTTP/1.1 or HTTP/2: interim answers, ends, resets and trailers,
// in all four ways, through this proxy and a stock Envoy. Both ends are Node's own. Where the proxies differ, it stands
// in docs/differences-from-envoy.md.
import assert from "node:assert/strict";
import fs from "node:fs";
import { constants } from "node:http2";
import os from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { type HttpVersion, versions } from "../../../../tests/tools/http2-client.ts";
import { waitFor } from "../../../../tests/tools/processes.ts";
import {
  type ClientEnd,
  type CrossingHost,
  type Fields,
  type HostEnd,
  openClient,
  startCrossingHost,
} from "../testing/crossing-peers.ts";
import { extension, fileAccessLog, http2Options, loopback, router, staticCluster } from "../testing/envoy-json.ts";
import { type Side, startEnvoy, startOurs } from "../testing/parity-pair.ts";

const sides = ["ours", "envoys"] as const;

/** One way through one proxy, and what the same thing is called on it. */
class Way {
  readonly side: (typeof sides)[number];
  readonly client: HttpVersion;
  readonly host: HttpVersion;

  constructor(side: Way["side"], client: HttpVersion, host: HttpVersion) {
    this.side = side;
    this.client = client;
    this.host = host;
  }

  get isOurs(): boolean {
    return this.side === "ours";
  }

  /** What the client sees of an answer that is cut short. */
  get cut(): string {
    return this.client === "HTTP/2" ? "reset INTERNAL_ERROR" : "closed";
  }

  /** What the host sees of a request that the proxy gives up. */
  get givenUp(): string {
    if (this.host === "HTTP/1.1") return "closed";
    return this.isOurs ? "reset CANCEL" : "reset INTERNAL_ERROR";
  }

  /** What is logged of a client that has given up. */
  get clientGone(): string {
    return this.client === "HTTP/2" ? "DR http2.remote_reset" : "DC downstream_remote_disconnect";
  }

  /** What the client itself sees of that. */
  get own(): string {
    return this.client === "HTTP/2" ? "reset CANCEL" : "closed";
  }
}

type Outcome = readonly [client: string, host: string, log: string];

interface Row {
  readonly name: string;
  readonly fields?: Fields;
  /** `plain` carries trailers over HTTP/1.1, `dropping` does not. */
  readonly listener?: "plain" | "dropping";
  /** Of no route. */
  readonly isRefused?: boolean;
  /** Others would share the connection that it ends. */
  readonly isAlone?: boolean;
  play(client: ClientEnd, host: () => Promise<HostEnd>): Promise<void>;
  expected(way: Way): Outcome;
}

const good = "200 - via_upstream";
const expects: Fields = { expect: "100-continue" };

/** The host, once it has the whole request. */
async function asked(client: ClientEnd, host: () => Promise<HostEnd>): Promise<HostEnd> {
  client.end();
  const end = await host();
  await end.seen.until(/end/);
  return end;
}

/** The host, once it has the beginning of a body. */
async function begun(client: ClientEnd, host: () => Promise<HostEnd>): Promise<HostEnd> {
  client.write("a");
  const end = await host();
  await end.seen.until(/data a/);
  return end;
}

async function answering(client: ClientEnd, host: () => Promise<HostEnd>): Promise<HostEnd> {
  const end = await asked(client, host);
  end.head(200);
  end.write("x");
  await client.seen.until(/data x/);
  return end;
}

const interim: readonly Row[] = [
  {
    name: "a client that waits for 100, and a host that says it",
    fields: expects,
    async play(client, host) {
      const end = await host();
      end.inform(100);
      await client.seen.until(/100/);
      client.write("body");
      (await asked(client, host)).answer(200);
    },
    expected: () => ["100, 200, end", "POST, data body, end", good],
  },
  {
    name: "a host that never says 100",
    fields: expects,
    async play(client, host) {
      await client.seen.until(/100/);
      client.write("body");
      (await asked(client, host)).answer(200);
    },
    expected: () => ["100, 200, end", "POST, data body, end", good],
  },
  {
    name: "a client that says Expect and does not wait",
    fields: expects,
    async play(client, host) {
      client.write("body");
      (await asked(client, host)).answer(200);
    },
    expected: () => ["100, 200, end", "POST, data body, end", good],
  },
  {
    name: "a host that refuses before the body",
    fields: expects,
    play: async (_client, host) => (await host()).answer(417),
    expected: (way) => ["100, 417, end", `POST, ${way.givenUp}`, "417 - via_upstream"],
  },
  {
    name: "a proxy that refuses before the body",
    fields: expects,
    isRefused: true,
    play: async () => undefined,
    expected: ({ isOurs }) => [isOurs ? "404, end" : "100, 404, end", "", "404 NR route_not_found"],
  },
  {
    name: "an expectation that is no 100",
    fields: { expect: "202-maybe" },
    play: async (client, host) => (await asked(client, host)).answer(200),
    expected: () => ["200, end", "POST expect=202-maybe, end", good],
  },
  {
    name: "two hints before an answer",
    async play(client, host) {
      const end = await asked(client, host);
      end.inform(103, { link: "</a>" });
      end.inform(103, { link: "</b>" });
      end.answer(200);
    },
    expected: ({ isOurs }) => [isOurs ? "103, 103, 200, end" : "200, end", "POST, end", good],
  },
  {
    name: "102 before a refusal",
    async play(client, host) {
      const end = await asked(client, host);
      end.inform(102);
      end.answer(403);
    },
    expected: ({ isOurs }) => [isOurs ? "102, 403, end" : "403, end", "POST, end", "403 - via_upstream"],
  },
  {
    name: "100 that nobody asked for",
    async play(client, host) {
      const end = await asked(client, host);
      end.inform(100);
      end.answer(200);
    },
    expected: () => ["200, end", "POST, end", good],
  },
];

const early: readonly Row[] = [
  {
    name: "an answer before the request's end",
    async play(client, host) {
      const end = await begun(client, host);
      end.head(200);
      end.write("x");
      end.end();
    },
    expected: (way) => ["200, data x, end", `POST, data a, ${way.givenUp}`, good],
  },
  {
    name: "the head of an answer before the request's end",
    async play(client, host) {
      const end = await begun(client, host);
      end.head(200);
      end.write("x");
      await client.seen.until(/data x/);
      client.write("b");
      await asked(client, host);
      end.write("y");
      end.end();
    },
    expected: () => ["200, data xy, end", "POST, data ab, end", good],
  },
  {
    name: "a client that gives up in its body",
    async play(client, host) {
      await begun(client, host);
      client.reset();
    },
    expected: (way) => [way.own, `POST, data a, ${way.givenUp}`, `0 ${way.clientGone}`],
  },
  {
    name: "a client that gives up in the answer",
    async play(client, host) {
      await answering(client, host);
      client.reset();
    },
    expected: (way) => [`200, data x, ${way.own}`, `POST, end, ${way.givenUp}`, `200 ${way.clientGone}`],
  },
];

/** What a reset with that code means: the flag and reason where HTTP/2 can say it. */
const codes = {
  NO_ERROR: "503 UR remote_reset",
  PROTOCOL_ERROR: "502 UPE protocol_error",
  INTERNAL_ERROR: "503 UR remote_reset",
  REFUSED_STREAM: "503 UR remote_refused_stream_reset",
  CANCEL: "503 UR remote_reset",
  ENHANCE_YOUR_CALM: "503 UR remote_reset",
  HTTP_1_1_REQUIRED: "503 UR remote_reset",
};

function refusal(code: string): Outcome {
  const [status, flag, reason] = code.split(" ") as [string, string, string];
  const body = `data upstream connect error or disconnect/reset before headers. reset reason: ${reason.replaceAll("_", " ")}`;
  return [`${status}, ${body}, end`, "", `${status} ${flag} upstream_reset_before_response_started{${reason}}`];
}

const resets: readonly Row[] = Object.entries(codes).flatMap(([code, meaning]): Row[] => {
  const errorCode = constants[`NGHTTP2_${code}` as "NGHTTP2_CANCEL"];
  const refused = (way: Way): Outcome => refusal(way.host === "HTTP/2" ? meaning : "503 UC connection_termination");
  // Over HTTP/1.1 all are the end of the connection; Node takes NO_ERROR for the end that it may be.
  const seen = ({ host }: Way): string => {
    if (host === "HTTP/1.1") return ", closed";
    return code === "NO_ERROR" ? "" : `, reset ${code}`;
  };
  const whole: Row = {
    name: `${code} in the place of an answer`,
    play: async (client, host) => (await asked(client, host)).reset(errorCode),
    expected: (way) => {
      const [client, , log] = refused(way);
      return [client, `POST, end${seen(way)}`, log];
    },
  };
  const inBody: Row = {
    name: `${code} in the request's body`,
    play: async (client, host) => (await begun(client, host)).reset(errorCode),
    expected: (way) => {
      const [client, , log] = refused(way);
      const isSilent = seen(way) === "";
      return [client, `POST, data a${isSilent ? ", end" : seen(way)}`, log];
    },
  };
  const inAnswer: Row = {
    name: `${code} in the answer`,
    play: async (client, host) => (await answering(client, host)).reset(errorCode),
    expected: (way) => {
      const [, flag, reason] = way.host === "HTTP/2" ? meaning.split(" ") : ["", "UPE", "protocol_error"];
      return [
        `200, data x, ${way.cut}`,
        `POST, end${seen(way)}`,
        `200 ${flag} upstream_reset_after_response_started{${reason}}`,
      ];
    },
  };
  // What is refused before it was looked at is asked once more, unless it is a body that has gone.
  return code === "REFUSED_STREAM" ? [inBody, inAnswer] : [whole, inBody, inAnswer];
});

const ended: readonly Row[] = [
  {
    name: "a connection that ends before the answer",
    isAlone: true,
    play: async (client, host) => (await asked(client, host)).close(),
    expected: (way) => {
      const [client, , log] = refusal("503 UC connection_termination");
      return [client, `POST, end${way.host === "HTTP/1.1" ? ", closed" : ""}`, log];
    },
  },
  {
    name: "a connection that ends in the answer",
    isAlone: true,
    play: async (client, host) => (await answering(client, host)).close(),
    expected: (way) => [
      `200, data x, ${way.cut}`,
      `POST, end${way.host === "HTTP/1.1" ? ", closed" : ""}`,
      way.host === "HTTP/2"
        ? "200 UC upstream_reset_after_response_started{connection_termination}"
        : "200 UPE upstream_reset_after_response_started{protocol_error}",
    ],
  },
];

/** HTTP/1.1 carries them where `enable_trailers` says so, and HTTP/2 always. */
const trailers: readonly Row[] = (["plain", "dropping"] as const).flatMap((listener) =>
  ([{}, { te: "trailers" }] as const).flatMap((te) =>
    ["ax", ""].map((body): Row => ({
      name: `trailers both ways, ${listener}, ${"te" in te ? "asked for" : "not asked for"}, ${body === "" ? "without bodies" : "behind bodies"}`,
      listener,
      fields: { ...te, trailer: "x-a" },
      async play(client, host) {
        if (body !== "") client.write("a");
        client.end({ "x-a": "1" });
        const end = await host();
        await end.seen.until(/end/);
        end.head(200, { trailer: "x-b" });
        if (body !== "") end.write("x");
        end.end({ "x-b": "2" });
      },
      expected(way) {
        const passes = listener === "plain" || (way.client === "HTTP/2" && way.host === "HTTP/2");
        const steps = (name: string, text: string, trailer: string): string =>
          [name, ...(body === "" ? [] : [text]), ...(passes ? [`trailers ${trailer}`] : []), "end"].join(", ");
        const head = `POST${"te" in te ? " te=trailers" : ""} trailer=x-a`;
        return [steps("200", "data x", "x-b=2"), steps(head, "data a", "x-a=1"), good];
      },
    })),
  ),
);

/** Fields of one connection that a sender of HTTP/1.1 puts among its trailers: Envoy fails the host over HTTP/2. */
const connectionTrailers: readonly Row[] = ["connection", "te", "upgrade", "keep-alive"].map((name) => ({
  name: `${name} among trailers`,
  async play(client, host) {
    client.write("a");
    client.end({ "x-a": "1", ...(client.version === "HTTP/1.1" && { [name]: "1" }) });
    const end = await host();
    await end.seen.until(/end|reset/);
    if (end.seen.text.includes("reset")) return;
    end.head(200);
    end.end();
  },
  expected(way) {
    if (way.isOurs || way.client === "HTTP/2") return ["200, end", "POST, data a, trailers x-a=1, end", good];
    if (way.host === "HTTP/1.1") return ["200, end", `POST, data a, trailers x-a=1 ${name}=1, end`, good];
    return [
      refusal("502 UPE protocol_error")[0],
      "POST, data a, reset PROTOCOL_ERROR",
      refusal("502 UPE protocol_error")[2],
    ];
  },
}));

const rows = [...interim, ...early, ...resets, ...ended, ...trailers, ...connectionTrailers];

const passing = { http_protocol_options: { enable_trailers: true } };
const managers = { plain: passing, dropping: {} };
const http1Options = {
  "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
    "@type": extension("upstreams.http.v3.HttpProtocolOptions"),
    explicit_http_config: passing,
  },
};

function bootstrap(log: string, ports: Readonly<Record<HttpVersion, number>>): string {
  const route = (prefix: string, cluster: string): object => ({
    match: { prefix },
    route: { cluster, timeout: "0s" },
  });
  const managerOf = (name: string, more: object): object => ({
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: name,
    route_config: {
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: [route("/HTTP/2/", "HTTP/2"), route("/HTTP/1.1/", `HTTP/1.1 ${name}`)],
        },
      ],
    },
    http_filters: [router],
    access_log: [fileAccessLog(log, "%REQ(:path)%\t%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n")],
    ...more,
  });
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      listeners: Object.entries(managers).map(([name, more]) => ({
        name,
        address: loopback(0),
        filter_chains: [
          {
            filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: managerOf(name, more) }],
          },
        ],
      })),
      clusters: [
        staticCluster("HTTP/1.1 plain", [ports["HTTP/1.1"]], { typed_extension_protocol_options: http1Options }),
        staticCluster("HTTP/1.1 dropping", [ports["HTTP/1.1"]]),
        staticCluster("HTTP/2", [ports["HTTP/2"]], { typed_extension_protocol_options: http2Options }),
      ],
    },
  });
}

describe("what crosses between HTTP/1.1 and HTTP/2", () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-crossing-"));
  const open = new AsyncDisposableStack();
  const proxies = new Map<Way["side"], Side>();
  const hosts = new Map<HttpVersion, CrossingHost>();
  const outcomes = new Map<string, Promise<Outcome>>();
  const ways = sides.flatMap((side) =>
    versions.flatMap((client) => versions.map((host) => new Way(side, client, host))),
  );
  const pathOf = (row: Row, { side, client, host }: Way): string =>
    `/${row.isRefused === true ? "none" : host}/${side}/${client}/${host}/${row.name.replaceAll(/\W+/g, "-")}`;

  async function play(row: Row, way: Way): Promise<Outcome> {
    const proxy = proxies.get(way.side)!;
    const target = pathOf(row, way);
    using client = openClient(way.client, proxy.ports.get(row.listener ?? "plain")!, target, row.fields);
    let host: HostEnd | undefined;
    await row.play(client, async () => (host ??= await hosts.get(way.host)!.of(target)));
    const seen = await client.seen.whole();
    const atHost = (await host?.seen.whole()) ?? "";
    const isOf = (line: string): boolean => line.startsWith(`${target}\t`);
    const line = await waitFor(() => linesOf(proxy.log).find(isOf), { what: `the access log of ${target}` });
    return [seen, atHost, line.slice(target.length + 1)];
  }

  before(async () => {
    for (const version of versions) {
      const host = await startCrossingHost(version);
      open.defer(() => host.close());
      hosts.set(version, host);
    }
    const ports = { "HTTP/1.1": hosts.get("HTTP/1.1")!.port, "HTTP/2": hosts.get("HTTP/2")!.port };
    const make = (log: string): string => bootstrap(log, ports);
    proxies.set("ours", await startOurs(path.join(folder, "ours.log"), make));
    open.defer(() => proxies.get("ours")!.stop());
    proxies.set("envoys", await startEnvoy(folder, Object.keys(managers).length, make));
    open.defer(() => proxies.get("envoys")!.stop());
    // All at once, since each waits for an access log to be written.
    for (const row of rows.filter(({ isAlone }) => isAlone !== true)) {
      for (const way of ways) {
        const outcome = play(row, way);
        outcome.catch(() => undefined);
        outcomes.set(pathOf(row, way), outcome);
      }
    }
    await Promise.allSettled(outcomes.values());
  });
  after(async () => {
    await open.disposeAsync();
    fs.rmSync(folder, { recursive: true });
  });

  for (const row of rows) {
    test(row.name, async () => {
      for (const way of ways) {
        const outcome = await (outcomes.get(pathOf(row, way)) ?? play(row, way));
        assert.deepEqual([pathOf(row, way), ...outcome], [pathOf(row, way), ...row.expected(way)]);
      }
    });
  }
});

function linesOf(file: string): readonly string[] {
  const text = fs.existsSync(file) ? fs.readFileSync(file, "utf8") : "";
  return text.slice(0, text.lastIndexOf("\n") + 1).split("\n");
}
