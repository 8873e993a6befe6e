// What goes wrong behind the proxy: no way to a host, hosts that break off or answer nonsense, and the time that is
// over.
import {
  app,
  type FailureRow,
  get,
  lateFlag,
  main,
  resetAfter,
  resetBefore,
  seenClosed,
  upgrade,
  websocket,
} from "./failure-row.ts";

const refused = resetBefore("remote_connection_failure|delayed_connect_error:_Connection_refused");
const routing: readonly FailureRow[] = [
  { name: "no route", play: { path: "/NO" }, lines: ["404 NR route_not_found"], counters: ["http.main.no_route"] },
  {
    name: "a cluster that does not exist",
    play: { path: "/missing/" },
    lines: ["503 NC cluster_not_found"],
    counters: ["http.main.no_cluster"],
  },
  {
    name: "a cluster without hosts",
    play: { path: "/empty/" },
    lines: ["503 UH no_healthy_upstream"],
    counters: ["cluster.empty.upstream_cx_none_healthy"],
  },
  {
    name: "a limit of the cluster",
    play: { path: "/full/" },
    lines: [`503 UO ${resetBefore("overflow")}`],
    counters: ["cluster.full.upstream_rq_active_overflow"],
  },
  {
    name: "an upgrade that is not allowed",
    play: get("/ok", "Connection: upgrade\r\nUpgrade: websocket\r\n"),
    lines: ["403 - upgrade_failed"],
  },
];

const upstream: readonly FailureRow[] = [
  {
    name: "a refused connection",
    play: { path: "/refused/" },
    lines: [`503 UF ${refused}`],
    counters: ["cluster.refused.upstream_cx_connect_fail"],
  },
  {
    name: "refused connections, tries used up",
    play: { path: "/retried-refused/" },
    lines: [`503 URX,UF ${refused}`],
    counters: [
      "cluster.retried-refused.upstream_cx_connect_fail",
      "cluster.retried-refused.upstream_cx_connect_fail",
      "cluster.retried-refused.upstream_rq_retry_limit_exceeded",
    ],
  },
  {
    name: "a connection that does not come about in time",
    play: { path: "/mute/" },
    lines: [`503 UF ${resetBefore("connection_timeout")}`],
    counters: ["cluster.mute.upstream_cx_connect_timeout"],
  },
  ...(
    [
      ["closed before the answer", "/close-before-answer", `503 UC ${resetBefore("connection_termination")}`],
      ["reset before the answer", "/reset-before-answer", `503 UC ${resetBefore("connection_termination")}`],
    ] as const
  ).map(([name, path, line]): FailureRow => ({ name: `back end: ${name}`, play: { path }, lines: [line] })),
];

/** Answers that are none, or not as they say. */
const answers: readonly FailureRow[] = (
  [
    ["closed in the middle of a head", "/close-in-head", `502 UPE ${resetBefore("protocol_error")}`],
    ["closed in the middle of a body", "/close-in-body", `200 UPE ${resetAfter("protocol_error")}`],
    ["reset in the middle of a body", "/reset-in-body", `200 UPE ${resetAfter("protocol_error")}`],
    ["closed in the middle of a chunk", "/close-in-chunk", `200 UPE ${resetAfter("protocol_error")}`],
    ["closed before the last chunk", "/close-before-last-chunk", `200 UPE ${resetAfter("protocol_error")}`],
    ["two lengths", "/two-lengths", `502 UPE ${resetBefore("protocol_error")}`],
    ["two equal lengths", "/two-equal-lengths", `502 UPE ${resetBefore("protocol_error")}`],
    ["a list of lengths", "/length-list", `502 UPE ${resetBefore("protocol_error")}`],
    ["a length with a sign", "/length-no-number", `502 UPE ${resetBefore("protocol_error")}`],
    ["a length and chunks", "/length-and-chunked", `502 UPE ${resetBefore("protocol_error")}`],
    ["an unknown transfer coding", "/unknown-coding", `502 UPE ${resetBefore("protocol_error")}`],
    ["a chunk size that is none", "/bad-chunk-size", `200 UPE ${resetAfter("protocol_error")}`],
    ["no status line", "/no-status-line", `502 UPE ${resetBefore("protocol_error")}`],
    ["a status that is no number", "/bad-status", `502 UPE ${resetBefore("protocol_error")}`],
    ["a NUL in a head", "/null-in-head", `502 UPE ${resetBefore("protocol_error")}`],
    ["a space before a colon", "/space-in-name", `502 UPE ${resetBefore("protocol_error")}`],
    ["a head that is too large", "/too-large-head", `502 UPE ${resetBefore("protocol_error")}`],
    ["too many fields", "/too-many-fields", `502 UPE ${resetBefore("protocol_error")}`],
  ] as const
).map(([name, path, line]) => ({
  name: `back end: ${name}`,
  play: { path },
  lines: [line],
  counters: [app("cx_protocol_error")],
}));

/** What looks bad and passes. */
const tolerated: readonly FailureRow[] = (
  [
    ["HTTP/1.0 until the end", "/http10"],
    ["HTTP/1.0 with keep-alive", "/http10-kept"],
    ["closed behind the answer", "/closing/close-after-answer"],
  ] as const
).map(([name, path]) => ({ name: `back end: ${name}`, play: { path }, lines: ["200 - via_upstream"] }));

/** Where Tulle reads answers more strictly. */
const strictAnswers: readonly FailureRow[] = [
  {
    name: "back end: an endless chunk size",
    play: { path: "/stream-idle/chunk-size-of-zeros" },
    lines: [`200 UPE ${resetAfter("protocol_error")}`],
    counters: [app("cx_protocol_error")],
    envoy: {
      why: "it takes any number of zeros",
      lines: ["200 SI stream_idle_timeout"],
      counters: [main("rq_idle_timeout")],
    },
  },
  {
    name: "back end: 101 that nobody asked for",
    play: { path: "/unasked-101" },
    lines: [`502 UPE ${resetBefore("protocol_error")}`],
    counters: [app("cx_protocol_error")],
    envoy: { why: "it passes it on and closes", lines: ["101 - via_upstream"], counters: [] },
  },
  {
    name: "back end: HTTP/1.0 with chunks",
    play: { path: "/http10-chunked" },
    lines: [`502 UPE ${resetBefore("protocol_error")}`],
    counters: [app("cx_protocol_error")],
    envoy: { why: "it reads the chunks", lines: ["200 - via_upstream"], counters: [] },
  },
  {
    name: "back end: bytes behind the answer",
    play: { path: "/length-too-short" },
    lines: ["200 - via_upstream"],
    envoy: { why: "it counts them", counters: [app("cx_protocol_error")] },
  },
];

const moments: readonly FailureRow[] = [
  {
    name: "back end: reset in a body that only the end ends",
    play: { path: "/http10-reset" },
    lines: [`200 UC ${resetAfter("connection_termination")}`],
    envoy: { why: "it takes the reset for the end", lines: ["200 - via_upstream"] },
  },
  {
    name: "back end: closes between two requests",
    play: async (client, backEnd) => {
      const target = `/close-after-answer?${client.id}`;
      client.ask({ path: `/closing${target}`, isKept: true });
      await client.receive(/ok$/);
      await seenClosed(backEnd, target);
      client.ask({ path: "/closing/ok" });
      await client.answered();
    },
    lines: ["200 - via_upstream", "200 - via_upstream"],
  },
  {
    name: "back end: closes as the second request comes",
    play: async (client) => {
      client.ask({ path: "/second/close-at-second", isKept: true });
      await client.receive(/ok$/);
      client.ask({ path: "/second/close-at-second" });
      await client.answered();
    },
    lines: ["200 - via_upstream", `503 UC ${resetBefore("connection_termination")}`],
  },
  {
    name: "back end: ends a WebSocket",
    play: websocket("/upgraded-end"),
    lines: [`101 UC ${resetAfter("connection_termination")}`],
  },
  {
    name: "back end: resets a WebSocket",
    play: websocket("/upgraded-reset"),
    lines: [`101 UC ${resetAfter("connection_termination")}`],
  },
  {
    name: "back end: refuses a WebSocket",
    play: async (client) => {
      client.write(websocket("/upgrade-refused"));
      await client.receive(/^HTTP\/1\.1 401 [^]*\r\n\r\nno$/);
    },
    lines: ["401 - via_upstream"],
    http2: upgrade,
  },
  {
    name: "back end: a length that it never fills",
    play: { path: "/stream-idle/length-too-long" },
    lines: ["200 SI stream_idle_timeout"],
    counters: [main("rq_idle_timeout")],
  },
];

const times: readonly FailureRow[] = [
  {
    name: "the route's time is over",
    play: { path: "/timeout/hang" },
    lines: ["504 UT response_timeout"],
    counters: [app("rq_timeout")],
  },
  {
    name: "a try's time is over",
    play: { path: "/try-timeout/hang" },
    lines: ["504 UT upstream_per_try_timeout"],
    counters: [app("rq_per_try_timeout")],
  },
  {
    name: "a try without a sign",
    play: { path: "/try-idle/hang" },
    lines: ["504 UT upstream_per_try_idle_timeout"],
    counters: [app("rq_per_try_idle_timeout")],
  },
  {
    name: "a stream's idle time is over",
    play: { path: "/stream-idle/hang" },
    lines: ["504 SI stream_idle_timeout"],
    counters: [main("rq_idle_timeout")],
  },
  {
    name: "a WebSocket's idle time is over, and not the route's time for an answer",
    play: websocket("/upgraded"),
    lines: ["101 SI stream_idle_timeout"],
    counters: [main("rq_idle_timeout")],
  },
  {
    name: "a stream's time is over, by the route",
    play: { path: "/stream-duration/hang" },
    lines: ["504 DT max_duration_timeout"],
    counters: [main("rq_max_duration_reached")],
    envoy: { why: lateFlag, lines: ["504 - max_duration_timeout"] },
  },
  {
    name: "a stream's time is over, by the listener",
    listener: "short-streams",
    play: { path: "/hang" },
    lines: ["504 DT max_duration_timeout"],
    counters: ["http.short-streams.downstream_rq_max_duration_reached"],
    envoy: { why: lateFlag, lines: ["504 - max_duration_timeout"] },
  },
  {
    name: "a stream's time is over, by the cluster",
    play: { path: "/max-duration/hang" },
    lines: ["504 UMSDR upstream_max_stream_duration_reached"],
    counters: ["cluster.max-duration.upstream_rq_max_duration_reached"],
  },
  {
    name: "a stream's time is over within the answer",
    play: { path: "/stream-duration/length-too-long" },
    lines: ["200 DT max_duration_timeout"],
    counters: [main("rq_max_duration_reached")],
    envoy: { why: lateFlag, lines: ["200 - max_duration_timeout"] },
  },
];

export const upstreamFailures: readonly FailureRow[] = [
  ...routing,
  ...upstream,
  ...answers,
  ...tolerated,
  ...strictAnswers,
  ...moments,
  ...times,
];
