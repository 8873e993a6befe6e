// HTTP/2's own behaviour on this proxy and on a stock Envoy with the same configuration: how connections end, what
// limits them, resets and GOAWAY of either end. Compared are the frames that both ends are told, status, flags and
// details in the access log, and counters.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  answer,
  body,
  type Exchange,
  goAway,
  head,
  type Http2Outcome,
  type Http2Parity,
  type Http2Row,
  requestHead,
  reset,
  startHttp2Parity,
  streamsAtOnce,
} from "../../testing/http2-parity-stage.ts";
import { frameFlags, maxInteger } from "./frame.ts";

type Play = Http2Row["play"];
type Counters = Http2Outcome[3];

/** What a host is told of a stream that nobody waits for any more. */
const givenUp = (isOurs: boolean): string => (isOurs ? "cancel" : "internalError");
const tx = { upstream_rq_tx_reset: 1 };
const rx = { upstream_rq_rx_reset: 1 };
const good = "/1 200 - via_upstream";
const common = (options: object): Pick<Http2Row, "manager"> => ({ manager: { common_http_protocol_options: options } });

/** One exchange, whole. */
const one: Play = async (exchange) => {
  exchange.on("/1", answer);
  exchange.ask(await exchange.open(), 1, "/1");
  await exchange.tells(/1 200 end/);
};
const andClosed =
  (play: Play): Play =>
  async (exchange) => {
    await play(exchange);
    await exchange.tells(/closed/);
  };
/** A request that the host has, and does not answer. */
const asked = async (exchange: Exchange, isOpen = false) => {
  exchange.ask(await exchange.open(), 1, "/1", isOpen);
  return exchange.at("/1");
};
const begun = async (exchange: Exchange) => {
  exchange.on("/1", (host, streamId) => host.send(head(streamId, false), body(streamId, "x")));
  exchange.ask(await exchange.open(), 1, "/1");
  await exchange.tells(/1 200/);
};
const untilGivenUp = (exchange: Exchange): Promise<void> => exchange.tellsHosts(/cancel|internalError/);

const ends: readonly Http2Row[] = [
  {
    name: "max_requests_per_connection",
    ...common({ max_requests_per_connection: 1 }),
    play: andClosed(one),
    expected: () => [
      "1 200 end, goAway any noError, goAway 1 noError, closed",
      "1 /1 end",
      good,
      { downstream_cx_max_requests_reached: 1 },
    ],
  },
  {
    name: "max_connection_duration without a stream",
    ...common({ max_connection_duration: "3s" }),
    play: andClosed(one),
    expected: () => [
      "1 200 end, goAway any noError, goAway 1 noError, closed",
      "1 /1 end",
      good,
      { downstream_cx_max_duration_reached: 1 },
    ],
  },
  {
    name: "max_connection_duration with a stream, which is answered",
    ...common({ max_connection_duration: "3s" }),
    async play(exchange) {
      const { host, streamId } = await asked(exchange);
      await exchange.tells(/goAway/);
      answer(host, streamId);
      await exchange.tells(/closed/);
    },
    expected: () => [
      "1 200 end, goAway any noError, goAway 1 noError, closed",
      "1 /1 end",
      good,
      { downstream_cx_max_duration_reached: 1 },
    ],
  },
  {
    name: "idle_timeout",
    ...common({ idle_timeout: "3s" }),
    play: andClosed(one),
    expected: (isOurs) => [
      isOurs ? "1 200 end, goAway 1 noError, closed" : "1 200 end, goAway any noError, goAway 1 noError, closed",
      "1 /1 end",
      good,
      { downstream_cx_idle_timeout: 1 },
    ],
  },
  {
    name: "a client that says GOAWAY, and has no stream",
    async play(exchange) {
      await one(exchange);
      exchange.clients[0]!.send(goAway(0));
      if (exchange.isOurs) await exchange.tells(/closed/);
    },
    expected: (isOurs) => [isOurs ? "1 200 end, goAway 1 noError, closed" : "1 200 end", "1 /1 end", good, {}],
  },
  {
    name: "a client that goes",
    async play(exchange) {
      await asked(exchange);
      exchange.clients[0]!.socket.end();
      await untilGivenUp(exchange);
      await exchange.tells(/closed/);
    },
    expected: (isOurs) => [
      "closed",
      `1 /1 end ${givenUp(isOurs)}`,
      "/1 0 DC downstream_remote_disconnect",
      { downstream_rq_rx_reset: 1, ...tx },
    ],
  },
  {
    name: "a client that answers no pings",
    silent: "client",
    manager: { http2_protocol_options: { connection_keepalive: { interval: "2s", timeout: "1s" } } },
    async play(exchange) {
      await asked(exchange);
      await untilGivenUp(exchange);
      await exchange.tells(/closed/);
    },
    expected: (isOurs) => [
      "closed",
      `1 /1 end ${givenUp(isOurs)}`,
      "/1 0 DC downstream_local_disconnect(http2_ping_timeout)",
      { downstream_rq_rx_reset: 1, ...tx },
    ],
  },
  {
    name: "request_headers_timeout within a head in pieces",
    manager: { request_headers_timeout: "3s" },
    async play(exchange) {
      await one(exchange);
      exchange.clients[0]!.send(requestHead(3, "/2", frameFlags.endStream));
      exchange.requests += 1;
      await exchange.tells(exchange.isOurs ? /closed/ : /3 408 end noError/);
    },
    expected: (isOurs) => [
      `1 200 end, 3 408 end noError${isOurs ? ", goAway 3 enhanceYourCalm, closed" : ""}`,
      "1 /1 end",
      `- 408 - request_header_timeout, ${good}`,
      { downstream_rq_header_timeout: 1 },
    ],
  },
  {
    name: "more streams than max_concurrent_streams",
    manager: { http2_protocol_options: { max_concurrent_streams: 1 } },
    async play(exchange) {
      // The limit has been acknowledged then.
      await one(exchange);
      const [client] = exchange.clients;
      exchange.ask(client!, 3, "/2");
      const { host, streamId } = await exchange.at("/2");
      client!.send(requestHead(5, "/3", frameFlags.endHeaders | frameFlags.endStream));
      await exchange.tells(/refusedStream|closed/);
      if (exchange.isOurs) answer(host, streamId);
      else await untilGivenUp(exchange);
      await exchange.tells(/3 200 end|closed/);
    },
    expected: (isOurs) =>
      isOurs
        ? ["1 200 end, 3 200 end, 5 refusedStream", "1 /1 end, 3 /2 end", `${good}, /2 200 - via_upstream`, {}]
        : [
            "1 200 end, closed",
            "1 /1 end, 3 /2 end internalError",
            `${good}, /2 0 DPE codec_error:The_user_callback_function_failed`,
            tx,
          ],
  },
];

interface Limit {
  readonly name: string;
  readonly options: Pick<Http2Row, "manager" | "route" | "http2" | "common">;
  readonly begins: "asked" | "open" | "answering";
  readonly told: string;
  readonly log: (isOurs: boolean) => string;
  readonly counters: Counters;
}

/** Times that are over: before an answer, in a request, in an answer. */
const times: readonly Http2Row[] = (
  [
    {
      name: "stream_idle_timeout before an answer",
      options: { manager: { stream_idle_timeout: "3s" } },
      begins: "asked",
      told: "1 504 end",
      log: () => "/1 504 SI stream_idle_timeout",
      counters: { downstream_rq_idle_timeout: 1 },
    },
    {
      name: "stream_idle_timeout in a request",
      options: { manager: { stream_idle_timeout: "3s" } },
      begins: "open",
      told: "1 408 end noError",
      log: () => "/1 408 SI stream_idle_timeout",
      counters: { downstream_rq_idle_timeout: 1 },
    },
    {
      name: "stream_idle_timeout in an answer",
      options: { manager: { stream_idle_timeout: "3s" } },
      begins: "answering",
      told: "1 200 internalError",
      log: () => "/1 200 SI stream_idle_timeout",
      counters: { downstream_rq_idle_timeout: 1, downstream_rq_tx_reset: 1 },
    },
    {
      name: "max_stream_duration before an answer",
      options: common({ max_stream_duration: "3s" }),
      begins: "asked",
      told: "1 504 end",
      log: (isOurs) => `/1 504 ${isOurs ? "DT" : "-"} max_duration_timeout`,
      counters: { downstream_rq_max_duration_reached: 1 },
    },
    {
      name: "max_stream_duration in an answer",
      options: common({ max_stream_duration: "3s" }),
      begins: "answering",
      told: "1 200 internalError",
      log: (isOurs) => `/1 200 ${isOurs ? "DT" : "-"} max_duration_timeout`,
      counters: { downstream_rq_max_duration_reached: 1, downstream_rq_tx_reset: 1 },
    },
    {
      name: "request_timeout",
      options: { manager: { request_timeout: "3s" } },
      begins: "open",
      told: "1 408 end noError",
      log: () => "/1 408 - request_overall_timeout",
      counters: { downstream_rq_timeout: 1 },
    },
    {
      name: "the route's time-out",
      options: { route: { timeout: "3s" } },
      begins: "asked",
      told: "1 504 end",
      log: () => "/1 504 UT response_timeout",
      counters: { upstream_rq_timeout: 1 },
    },
    {
      name: "max_stream_duration of the cluster",
      options: { common: { max_stream_duration: "3s" } },
      begins: "asked",
      told: "1 504 end",
      log: () => "/1 504 UMSDR upstream_max_stream_duration_reached",
      counters: {},
    },
  ] satisfies Limit[]
).map(({ name, options, begins, told, log, counters }): Http2Row => ({
  name,
  ...options,
  async play(exchange) {
    if (begins === "answering") await begun(exchange);
    else await asked(exchange, begins === "open");
    await untilGivenUp(exchange);
    await exchange.tells(new RegExp(told));
  },
  expected: (isOurs) => [
    told,
    `1 /1 ${begins === "open" ? "" : "end "}${givenUp(isOurs)}`,
    log(isOurs),
    { ...counters, ...tx },
  ],
}));

const clientResets: readonly Http2Row[] = (
  ["cancel", "internalError", "refusedStream", "noError", "protocolError"] as const
).flatMap((code) =>
  (["asked", "open", "answering"] as const).map((begins): Http2Row => ({
    name: `a client's ${code}, ${begins}`,
    async play(exchange) {
      if (begins === "answering") await begun(exchange);
      else await asked(exchange, begins === "open");
      exchange.clients[0]!.send(reset(1, code));
      await untilGivenUp(exchange);
    },
    expected(isOurs) {
      const status = begins === "answering" ? 200 : 0;
      const details = code === "refusedStream" ? "http2.remote_refuse" : "http2.remote_reset";
      let log = `/1 ${status} DR ${details}`;
      if (!isOurs && code === "protocolError") log = `/1 ${status} DPE ${details}`;
      if (!isOurs && code === "noError" && begins !== "open")
        log = `/1 ${status} - ${status === 0 ? "-" : "via_upstream"}`;
      return [
        status === 0 ? "" : "1 200",
        `1 /1 ${begins === "open" ? "" : "end "}${givenUp(isOurs)}`,
        log,
        { downstream_rq_rx_reset: 1, ...tx },
      ];
    },
  })),
);

const retry = (retry_on: string): Pick<Http2Row, "route"> => ({
  route: { retry_policy: { retry_on, num_retries: 1, retry_back_off: { base_interval: "0.001s" } } },
});
/** What asks again after any reset, and what only after a refusal, or after none. */
const retryWords = ["", "reset", "5xx", "gateway-error", "refused-stream", "connect-failure"];
const resetReasons = {
  cancel: "503 UR remote_reset",
  noError: "503 UR remote_reset",
  internalError: "503 UR remote_reset",
  enhanceYourCalm: "503 UR remote_reset",
  refusedStream: "503 UR remote_refused_stream_reset",
  protocolError: "502 UPE protocol_error",
};

/** The host's first answer to a request is a reset, the next one is good. */
const hostResets: readonly Http2Row[] = retryWords.flatMap((words) =>
  (Object.keys(resetReasons) as (keyof typeof resetReasons)[]).map((code): Http2Row => ({
    name: `a host's ${code}, retry_on: ${words}`,
    ...(words === "" ? {} : retry(words)),
    async play(exchange) {
      let count = 0;
      exchange.on("/1", (host, streamId) => {
        count += 1;
        host.send(count === 1 ? reset(streamId, code) : head(streamId));
      });
      exchange.ask(await exchange.open(), 1, "/1");
      await exchange.tells(/1 \d+ .*end/);
    },
    expected(isOurs) {
      const isRefused = code === "refusedStream";
      const isCovered = ["reset", "5xx", "gateway-error"].includes(words) || (isRefused && words === "refused-stream");
      const resets = isRefused ? {} : code === "protocolError" ? tx : rx;
      if (isRefused && isOurs) return ["1 200 end", "1 /1 end, 3 /1 end", good, {}];
      if (isCovered) {
        const counters = { ...resets, upstream_rq_retry: 1, upstream_rq_retry_success: 1 };
        return ["1 200 end", "1 /1 end, 3 /1 end", good, counters];
      }
      const [status, flags, reason] = resetReasons[code].split(" ");
      const log = `/1 ${status} ${flags} upstream_reset_before_response_started{${reason}}`;
      return [`1 ${status} end`, "1 /1 end", log, resets];
    },
  })),
);

const behindAnswers: readonly Http2Row[] = [
  {
    name: "NO_ERROR behind a whole answer",
    async play(exchange) {
      exchange.on("/1", (host, streamId) => host.send(head(streamId), reset(streamId, "noError")));
      exchange.ask(await exchange.open(), 1, "/1");
      await exchange.tells(/1 200 end/);
    },
    expected: () => ["1 200 end", "1 /1 end", good, {}],
  },
  {
    name: "NO_ERROR behind a whole answer, in the request",
    async play(exchange) {
      exchange.on("/1", (host, streamId) => host.send(head(streamId), reset(streamId, "noError")));
      exchange.ask(await exchange.open(), 1, "/1", true);
      await exchange.tells(/1 200 end noError/);
      await untilGivenUp(exchange);
    },
    expected: (isOurs) => ["1 200 end noError", `1 /1 ${givenUp(isOurs)}`, good, isOurs ? {} : tx],
  },
  {
    name: "NO_ERROR behind all that the answer declared",
    async play(exchange) {
      exchange.on("/1", (host, streamId) =>
        host.send(head(streamId, false, [["content-length", "1"]]), body(streamId, "x"), reset(streamId, "noError")),
      );
      exchange.ask(await exchange.open(), 1, "/1");
      await exchange.tells(/1 200 (end|internalError)/);
    },
    expected: (isOurs) =>
      isOurs
        ? ["1 200 end", "1 /1 end", good, {}]
        : [
            "1 200 internalError",
            "1 /1 end",
            "/1 200 UR upstream_reset_after_response_started{remote_reset}",
            { downstream_rq_tx_reset: 1, ...rx },
          ],
  },
];

const closeNotify = { upstream_cx_close_notify: 1 };

/** Two streams, of which the host's GOAWAY takes the first. */
const leaving: Play = async (exchange) => {
  const { host, streamId } = await asked(exchange);
  exchange.ask(exchange.clients[0]!, 3, "/2");
  await exchange.at("/2");
  exchange.on("/2", answer);
  host.send(goAway(streamId));
  answer(host, streamId);
  await exchange.tells(/1 200 end, 3 \d+ .*end/);
  await exchange.tellsHosts(/closed/);
};

const hostsThatLeave: readonly Http2Row[] = [
  ...["", "refused-stream", "reset"].map((words): Http2Row => ({
    name: `a stream behind a host's GOAWAY, retry_on: ${words}`,
    ...(words === "" ? {} : retry(words)),
    play: leaving,
    expected(isOurs) {
      const log = `${good}, /2 200 - via_upstream`;
      const hosts = "1 /1 end, 3 /2 end, closed | 1 /2 end";
      if (isOurs) return ["1 200 end, 3 200 end", hosts, log, closeNotify];
      const retried = { ...closeNotify, upstream_rq_retry: 1, upstream_rq_retry_success: 1 };
      if (words !== "") return ["1 200 end, 3 200 end", hosts, log, retried];
      const refused = "/2 503 UR upstream_reset_before_response_started{remote_refused_stream_reset}";
      return ["1 200 end, 3 503 end", "1 /1 end, 3 /2 end, closed", `${good}, ${refused}`, closeNotify];
    },
  })),
  ...(["noError", "internalError"] as const).map((code): Http2Row => ({
    name: `a host's GOAWAY that takes every stream, ${code}`,
    async play(exchange) {
      const { host, streamId } = await asked(exchange);
      host.send(goAway(maxInteger, code));
      answer(host, streamId);
      await exchange.tells(/1 200 end/);
      await exchange.tellsHosts(/closed/);
      exchange.on("/2", answer);
      exchange.ask(exchange.clients[0]!, 3, "/2");
      await exchange.tells(/3 200 end/);
    },
    expected: () => [
      "1 200 end, 3 200 end",
      "1 /1 end, closed | 1 /2 end",
      `${good}, /2 200 - via_upstream`,
      closeNotify,
    ],
  })),
  {
    name: "a host's GOAWAY without a stream",
    async play(exchange) {
      await one(exchange);
      exchange.hosts[0]!.send(goAway(1));
      await exchange.tellsHosts(/closed/);
      exchange.on("/2", answer);
      exchange.ask(exchange.clients[0]!, 3, "/2");
      await exchange.tells(/3 200 end/);
    },
    expected: () => [
      "1 200 end, 3 200 end",
      "1 /1 end, closed | 1 /2 end",
      `${good}, /2 200 - via_upstream`,
      closeNotify,
    ],
  },
  {
    name: "a host that goes before its answer",
    async play(exchange) {
      const { host } = await asked(exchange);
      host.socket.end();
      await exchange.tells(/1 503 end/);
      await exchange.tellsHosts(/closed/);
    },
    expected: () => [
      "1 503 end",
      "1 /1 end, closed",
      "/1 503 UC upstream_reset_before_response_started{connection_termination}",
      {},
    ],
  },
  {
    name: "a host that goes in its answer",
    async play(exchange) {
      await begun(exchange);
      exchange.hosts[0]!.socket.end();
      await exchange.tells(/internalError/);
      await exchange.tellsHosts(/closed/);
    },
    expected: () => [
      "1 200 internalError",
      "1 /1 end, closed",
      "/1 200 UC upstream_reset_after_response_started{connection_termination}",
      { downstream_rq_tx_reset: 1 },
    ],
  },
  {
    name: "a host that answers no pings",
    silent: "host",
    http2: { connection_keepalive: { interval: "2s", timeout: "1s" } },
    async play(exchange) {
      await asked(exchange);
      await exchange.tells(/1 503 end/);
      await exchange.tellsHosts(/closed/);
    },
    expected: () => [
      "1 503 end",
      "1 /1 end, closed",
      "/1 503 UC upstream_reset_before_response_started{connection_termination}",
      { "http2.keepalive_timeout": 1 },
    ],
  },
];

/** Three more requests at once, when the limit is known. */
const many: Play = async (exchange) => {
  await one(exchange);
  for (const number of [2, 3, 4]) {
    exchange.ask(exchange.clients[0]!, 2 * number - 1, `/${number}`);
    await exchange.at(`/${number}`);
  }
  for (const number of [2, 3, 4]) {
    const { host, streamId } = await exchange.at(`/${number}`);
    answer(host, streamId);
    await exchange.tells(new RegExp(`${2 * number - 1} 200 end`));
  }
};
const fourAnswers = "1 200 end, 3 200 end, 5 200 end, 7 200 end";
const fourLines = [1, 2, 3, 4].map((number) => `/${number} 200 - via_upstream`).join(", ");
const breakers = (limits: object): Pick<Http2Row, "cluster"> => ({
  cluster: { circuit_breakers: { thresholds: [limits] } },
});
const overflow = (path: string): string => `${path} 503 UO upstream_reset_before_response_started{overflow}`;

const limits: readonly Http2Row[] = [
  ...[
    { name: "SETTINGS_MAX_CONCURRENT_STREAMS of a host", hostSettings: streamsAtOnce(1) },
    { name: "max_concurrent_streams of the cluster", http2: { max_concurrent_streams: 1 } },
  ].map((row): Http2Row => ({
    ...row,
    play: many,
    expected: () => [fourAnswers, "1 /1 end, 3 /2 end | 1 /3 end | 1 /4 end", fourLines, {}],
  })),
  {
    name: "max_connections where streams share one",
    ...breakers({ max_connections: 1 }),
    play: many,
    expected: () => [fourAnswers, "1 /1 end, 3 /2 end, 5 /3 end, 7 /4 end", fourLines, {}],
  },
  {
    name: "max_connections and max_pending_requests",
    hostSettings: streamsAtOnce(1),
    ...breakers({ max_connections: 1, max_pending_requests: 1 }),
    async play(exchange) {
      await one(exchange);
      const [client] = exchange.clients;
      exchange.ask(client!, 3, "/2");
      const { host, streamId } = await exchange.at("/2");
      exchange.on("/3", answer);
      exchange.ask(client!, 5, "/3");
      exchange.ask(client!, 7, "/4");
      await exchange.tells(/7 503 .*end/);
      answer(host, streamId);
      await exchange.tells(/5 200 end/);
    },
    expected: () => [
      "1 200 end, 3 200 end, 5 200 end, 7 503 end",
      "1 /1 end, 3 /2 end, 5 /3 end",
      `${fourLines.split(", ").slice(0, 3).join(", ")}, ${overflow("/4")}`,
      { upstream_cx_overflow: 1, upstream_rq_pending_overflow: 1 },
    ],
  },
  {
    name: "max_requests",
    ...breakers({ max_requests: 1 }),
    async play(exchange) {
      const { host, streamId } = await asked(exchange);
      exchange.ask(exchange.clients[0]!, 3, "/2");
      await exchange.tells(/3 503 .*end/);
      answer(host, streamId);
      await exchange.tells(/1 200 end/);
    },
    expected: () => [
      "1 200 end, 3 503 end",
      "1 /1 end",
      `${good}, ${overflow("/2")}`,
      { upstream_rq_active_overflow: 1 },
    ],
  },
  {
    name: "max_pending_requests of none",
    ...breakers({ max_pending_requests: 0 }),
    async play(exchange) {
      exchange.ask(await exchange.open(), 1, "/1");
      await exchange.tells(/1 503 .*end/);
    },
    expected: () => ["1 503 end", "", overflow("/1"), { upstream_rq_pending_overflow: 1 }],
  },
  {
    name: "max_retries of none",
    ...breakers({ max_retries: 0 }),
    ...retry("reset"),
    async play(exchange) {
      exchange.on("/1", (host, streamId) => host.send(reset(streamId, "internalError")));
      exchange.ask(await exchange.open(), 1, "/1");
      await exchange.tells(/1 503 .*end/);
    },
    expected: () => [
      "1 503 end",
      "1 /1 end",
      "/1 503 UO,UR upstream_reset_before_response_started{remote_reset}",
      { upstream_rq_retry_overflow: 1, ...rx },
    ],
  },
  ...[
    {
      name: "max_requests_per_connection of the cluster",
      common: { max_requests_per_connection: 1 },
      counters: { upstream_cx_max_requests: 1 },
    },
    { name: "idle_timeout of the cluster", common: { idle_timeout: "3s" }, counters: { upstream_cx_idle_timeout: 1 } },
    {
      name: "max_connection_duration of the cluster",
      common: { max_connection_duration: "3s" },
      counters: { upstream_cx_max_duration_reached: 1 },
    },
  ].map(({ counters, ...row }): Http2Row => ({
    ...row,
    async play(exchange) {
      await one(exchange);
      await exchange.tellsHosts(/closed/);
    },
    expected: () => ["1 200 end", "1 /1 end, closed", good, counters],
  })),
];

const rows = [...ends, ...times, ...clientResets, ...hostResets, ...behindAnswers, ...hostsThatLeave, ...limits];

/** Of the whole proxy. */
const drains: readonly Http2Row[] = [
  {
    name: "a graceful drain: what is under way is answered",
    async play(exchange) {
      await one(exchange);
      exchange.ask(exchange.clients[0]!, 3, "/2");
      const { host, streamId } = await exchange.at("/2");
      await exchange.post("/drain_listeners?graceful");
      answer(host, streamId);
      await exchange.tells(/closed/);
    },
    expected: () => [
      "1 200 end, 3 200 end, goAway any noError, goAway 3 noError, closed",
      "1 /1 end, 3 /2 end",
      `${good}, /2 200 - via_upstream`,
      {},
    ],
  },
];

for (const [what, table] of Object.entries({ "HTTP/2 itself": rows, "a proxy that drains": drains })) {
  describe(`${what}, on both proxies`, () => {
    let parity: Http2Parity;
    before(async () => {
      parity = await startHttp2Parity(table);
    });
    after(async () => {
      await parity?.[Symbol.asyncDispose]();
    });

    for (const [index, row] of table.entries()) {
      for (const side of ["ours", "envoys"] as const) {
        test(`${row.name}, ${side}`, async () => {
          assert.deepEqual(await parity.outcome(index, side), row.expected(side === "ours"));
        });
      }
    }
  });
}
