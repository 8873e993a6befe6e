// A client on 127.0.0.1, as everybody's is on a laptop: an Envoy may take that address for one of its own network. What
// such a client says in headers by which Envoys speak to each other is believed by neither proxy.
import { type Call, type Expected, type Role, type Row, rows } from "./call.ts";

/** Headers that steer a proxy, or that tell the next hop what a proxy has seen. */
const steering: Readonly<Record<string, string>> = {
  "x-envoy-internal": "true",
  "x-envoy-retry-on": "5xx",
  "x-envoy-retry-grpc-on": "internal",
  "x-envoy-max-retries": "2",
  "x-envoy-retriable-status-codes": "500",
  "x-envoy-retriable-header-names": "content-type",
  "x-envoy-upstream-rq-timeout-ms": "1",
  "x-envoy-upstream-rq-per-try-timeout-ms": "1",
  "x-envoy-upstream-rq-timeout-alt-response": "1",
  "x-envoy-upstream-stream-duration-ms": "1",
  "x-envoy-upstream-alt-stat-name": "mine",
  "x-envoy-hedge-on-per-try-timeout": "true",
  "x-envoy-force-trace": "true",
  "x-envoy-ip-tags": "mine",
  "x-envoy-original-url": "/mine",
};

/** What a neighbour may say, and a stranger may not. */
const toldByNeighbours: Readonly<Record<string, string>> = {
  "x-envoy-original-path": "/mine",
  "x-envoy-original-host": "mine",
  "x-envoy-decorator-operation": "mine",
  "x-envoy-downstream-service-cluster": "mine",
  "x-envoy-downstream-service-node": "mine",
  "x-forwarded-client-cert": "By=spiffe://mine",
};

const none = (headers: Readonly<Record<string, string>>): Readonly<Record<string, null>> =>
  Object.fromEntries(Object.keys(headers).map((name) => [name, null]));

/** A proxy that may try again tells how often it has; the one before an application does not. */
const common = (plain: string, failing: string, tries: Pick<Expected, "attempts">): readonly Row[] => [
  ["steering headers", plain, { headers: steering }, { status: 200, ...tries, received: none(steering) }],
  ["retry wishes", failing, { headers: steering }, { status: 500, ...tries }],
];

/** `x-forwarded-proto` of the connection, not of the client; a limit that is not the client's. */
const atGateway: Expected["received"] = {
  ...none(toldByNeighbours),
  "x-envoy-external-address": "127.0.0.1",
  "x-forwarded-proto": "http",
};

const gateway: readonly Row[] = [
  ...common("/v1", "/once~status?code=500", { attempts: 1 }),
  [
    "what only neighbours may say",
    "/v1",
    { headers: { ...toldByNeighbours, "x-envoy-external-address": "9.9.9.9", "x-forwarded-proto": "https" } },
    { status: 200, received: atGateway },
  ],
  [
    "a time limit",
    "/long-timeout~",
    { headers: { "x-envoy-upstream-rq-timeout-ms": "1", "x-envoy-expected-rq-timeout-ms": "1" } },
    { status: 200, received: { "x-envoy-upstream-rq-timeout-ms": null, "x-envoy-expected-rq-timeout-ms": "2000" } },
  ],
];

const inMesh = (plain: string): readonly Row[] => [
  [
    "what a neighbour says of rewrites",
    plain,
    { headers: { "x-envoy-original-path": "/mine", "x-envoy-original-host": "mine" } },
    { status: 200, received: { "x-envoy-original-path": "/mine", "x-envoy-original-host": "mine" } },
  ],
];

const ofRole = (role: Role, table: readonly Row[]): readonly Call[] => rows(role, table);

export const loopbackCalls: readonly Call[] = [
  ...ofRole("gateway", gateway),
  ...ofRole("outbound", [...common("/v1", "/once~status?code=500", { attempts: 1 }), ...inMesh("/v1")]),
  ...ofRole("inbound", [...common("/", "/status?code=500", {}), ...inMesh("/")]),
];
