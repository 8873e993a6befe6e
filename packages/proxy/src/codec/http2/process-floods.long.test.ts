// The same floods, and those that are seen in memory alone, against a proxy in a process of its own: its memory and its
// CPU stay bounded, the flood is named, and an honest client beside it is served all the while.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import http from "node:http";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { waitFor } from "../../../../../tests/tools/processes.ts";
import { extension, loopback, router, staticCluster } from "../../testing/envoy-json.ts";
import { type Flood, http2Floods, requestFields } from "../../testing/http2-floods.ts";
import { emptySettings, frame, Http2Peer, settingFrame } from "../../testing/http2-peer.ts";
import { startProxyProcess } from "../../testing/proxy-process.ts";
import { frameFlags, frameTypes } from "./frame.ts";

const { endStream, endHeaders } = frameFlags;
const whole = endStream | endHeaders;
const { headers } = frameTypes;

/** Above what the proxy holds before the flood. */
const mostMoreBytes = 150 * 1024 * 1024;
/** Of one flood; what ends at once costs less than a tenth of it. */
const mostCpuSeconds = 10;
const largeBytes = 1024 * 1024;

interface ProcessFlood extends Omit<Flood, "metric"> {
  /** Undefined where nothing is wrong but that it waits. */
  readonly metric: Flood["metric"] | undefined;
  readonly settings?: Buffer;
}

/** One large entry of the table, then a byte for each 4,000. */
const bomb = Buffer.concat([
  Buffer.from([0x40, 1, 120, 0x7f, 0xa1, 0x1e]),
  Buffer.alloc(4000, 97),
  Buffer.alloc(11_000, 0xbe),
]);

const floods: readonly ProcessFlood[] = [
  ...http2Floods,
  {
    name: "HPACK bomb",
    turn: (index) => [frame(headers, whole, 2 * index + 1, Buffer.concat([requestFields("/"), bomb]))],
    turns: 500,
    metric: "headersOverflow",
  },
  {
    name: "fields of no length (CVE-2019-9516)",
    turn: (index) => [frame(headers, whole, 2 * index + 1, Buffer.concat([requestFields("/"), Buffer.alloc(15_000)]))],
    turns: 3000,
    metric: "headersOverflow",
  },
  {
    name: "large answers behind windows of zero (CVE-2019-9517)",
    settings: settingFrame(4, 0),
    turn: (index) => [frame(headers, whole, 2 * index + 1, requestFields("/large"))],
    turns: 1000,
    metric: undefined,
  },
];

async function backEnd(t: TestContext): Promise<number> {
  const large = Buffer.alloc(largeBytes, "x");
  const server = http.createServer((request, response) => {
    if (request.url !== "/silent") response.end(request.url === "/large" ? large : "ok");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

function bootstrapOf(backEndPort: number): string {
  const none = {
    match: { path: "/none" },
    direct_response: { status: 204 },
    response_headers_to_add: [{ header: { key: "x-large", value: "x".repeat(4000) } }],
  };
  const manager = {
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "http",
    http2_protocol_options: { max_outbound_frames: 1000 },
    route_config: {
      virtual_hosts: [
        { name: "all", domains: ["*"], routes: [none, { match: { prefix: "/" }, route: { cluster: "app" } }] },
      ],
    },
    http_filters: [router],
  };
  const filters = [{ name: "http", typed_config: manager }];
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      listeners: [{ name: "http", address: loopback(0), filter_chains: [{ filters }] }],
      clusters: [staticCluster("app", [backEndPort])],
    },
  });
}

interface MeasuredProxy {
  readonly port: number;
  readonly counter: (name: string) => Promise<number>;
  /** At its highest, since it began. */
  readonly peakBytes: () => Promise<number>;
  readonly cpuSeconds: () => Promise<number>;
}

async function startMeasuredProxy(t: TestContext): Promise<MeasuredProxy> {
  const { child, ports, adminPort } = await startProxyProcess<"http">(t, bootstrapOf(await backEnd(t)));
  const proc = (file: string): Promise<string> => readFile(`/proc/${child.pid}/${file}`, "utf8");
  return {
    port: ports.http,
    async counter(name) {
      const page = await (await fetch(`http://127.0.0.1:${adminPort}/stats`)).text();
      return Number(new RegExp(`^http2\\.${name}: (\\d+)$`, "m").exec(page)?.[1] ?? 0);
    },
    peakBytes: async () => Number(/^VmHWM:\s+(\d+) kB$/m.exec(await proc("status"))![1]) * 1024,
    async cpuSeconds() {
      // Behind the program's name: the 12th and 13th, in hundredths.
      const fields = (await proc("stat")).replace(/^.*\) /s, "").split(" ");
      return (Number(fields[11]) + Number(fields[12])) / 100;
    },
  };
}

/** Asks one thing after the other until it is told to stop; resolves with how many were answered. */
async function askOnAndOn(port: number, signal: AbortSignal): Promise<number> {
  const session = http2.connect(`http://127.0.0.1:${port}`);
  let answered = 0;
  try {
    do {
      const stream = session.request({ ":path": "/" });
      const [answer] = (await once(stream, "response")) as [http2.IncomingHttpStatusHeader];
      assert.equal(answer[":status"], 200);
      await once(stream.resume(), "close");
      answered += 1;
    } while (!signal.aborted);
  } finally {
    session.destroy();
  }
  return answered;
}

async function flood(
  t: TestContext,
  port: number,
  { turn, turns, settings, readsNothing }: ProcessFlood,
): Promise<void> {
  const peer = await Http2Peer.open(port, settings ?? emptySettings);
  t.after(() => peer.socket.destroy());
  if (readsNothing) peer.socket.pause();
  for (let index = 0; index < turns && !peer.isClosed; index += 1) {
    peer.send(...turn(index));
    if (peer.socket.writableLength < 1_000_000) continue;
    await Promise.race([once(peer.socket, "drain"), once(peer.socket, "close")]);
  }
  if (readsNothing) peer.socket.resume();
}

/** Where the counter has another name than its field. */
const statNames: Readonly<Record<string, string>> = { headersOverflow: "header_overflow" };

for (const each of floods) {
  test(`a proxy of its own holds: ${each.name}`, async (t) => {
    const proxy = await startMeasuredProxy(t);
    await askOnAndOn(proxy.port, AbortSignal.abort());
    const [bytesBefore, secondsBefore] = [await proxy.peakBytes(), await proxy.cpuSeconds()];
    const stop = new AbortController();
    t.after(() => stop.abort());
    const honest = askOnAndOn(proxy.port, stop.signal);
    honest.catch(() => undefined);
    await flood(t, proxy.port, each);
    const { metric } = each;
    // Resets, refusals and floods are counted; streams that wait are not.
    if (metric !== undefined) {
      const counted = async (): Promise<boolean> => (await proxy.counter(statNames[metric] ?? metric)) > 0;
      await waitFor(counted, { what: metric });
    }
    stop.abort();
    assert.ok((await honest) > 0);
    await askOnAndOn(proxy.port, AbortSignal.abort());
    const moreBytes = (await proxy.peakBytes()) - bytesBefore;
    const seconds = (await proxy.cpuSeconds()) - secondsBefore;
    t.diagnostic(`${Math.round(moreBytes / 1024 / 1024)} MiB, ${seconds.toFixed(2)} s of CPU`);
    assert.ok(moreBytes < mostMoreBytes, `${moreBytes} bytes more`);
    assert.ok(seconds < mostCpuSeconds, `${seconds} s of CPU`);
  });
}
