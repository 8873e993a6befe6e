// Listener resources: which filter chain takes a connection, what the connection manager becomes, and what is refused.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { accepted, fromConfiguration, problemsOf, requestHead, streamInfo } from "../testing/from-configuration.ts";
import { connectionManagerDefaults, managerOf } from "../testing/hand-built-runtime.ts";
import type { ConnectionProperties } from "./listener.ts";
import { compileListener } from "./compile-listener.ts";
import { detachedScope } from "../fields/compile-scope.ts";

const type = (name: string): string => `type.googleapis.com/envoy.extensions.${name}`;
const router = { name: "envoy.filters.http.router", typed_config: { "@type": type("filters.http.router.v3.Router") } };
const inline = { name: "inline", virtual_hosts: [{ name: "a", domains: ["*"] }] };

function manager(settings: object = {}): object {
  const base = { stat_prefix: "s", http_filters: [router] };
  const withRoutes = "rds" in settings || "scoped_routes" in settings ? base : { ...base, route_config: inline };
  return {
    name: "envoy.filters.network.http_connection_manager",
    typed_config: {
      "@type": type("filters.network.http_connection_manager.v3.HttpConnectionManager"),
      ...withRoutes,
      ...settings,
    },
  };
}

const address = (port_value = 8080): object => ({ socket_address: { address: "127.0.0.1", port_value } });
const chain = (name: string, filter_chain_match?: object, settings?: object): object => ({
  name,
  ...(filter_chain_match && { filter_chain_match }),
  filters: [manager(settings)],
});

function compile(json: object, overrides = {}) {
  const message = fromConfiguration(ListenerSchema, { name: "l", address: address(), ...json });
  return compileListener(message, detachedScope(overrides), { clusterExists: (name) => name === "known" });
}

const connection: ConnectionProperties = {
  localIp: "10.0.0.5",
  localPort: 80,
  remoteIp: "10.1.0.9",
  directRemoteIp: "10.1.0.9",
  remotePort: 4711,
  transportProtocol: "raw_buffer",
  serverName: "",
  applicationProtocols: [],
};

const range = (address_prefix: string, prefix_len: number): object => ({ address_prefix, prefix_len });

const chains: readonly {
  readonly name: string;
  readonly matches: Readonly<Record<string, object>>;
  readonly connection?: Partial<ConnectionProperties>;
  readonly expected: string;
}[] = [
  { name: "no match takes all", matches: { a: {} }, expected: "a" },
  { name: "port before none", matches: { a: {}, b: { destination_port: 80 } }, expected: "b" },
  { name: "other port", matches: { a: { destination_port: 81 } }, expected: "default" },
  {
    name: "the longest range",
    matches: { a: { prefix_ranges: [range("10.0.0.0", 8)] }, b: { prefix_ranges: [range("10.0.0.0", 24)] }, c: {} },
    expected: "b",
  },
  {
    name: "no way back from a port",
    matches: { a: { destination_port: 80, source_ports: [1] }, b: { source_ports: [4711] } },
    expected: "default",
  },
  { name: "source range", matches: { a: { source_prefix_ranges: [range("10.1.0.0", 16)] }, b: {} }, expected: "a" },
  { name: "IPv6 range is for IPv6", matches: { a: { prefix_ranges: [range("::", 0)] }, b: {} }, expected: "b" },
  { name: "local source", matches: { a: { source_type: "SAME_IP_OR_LOOPBACK" }, b: {} }, expected: "b" },
  {
    name: "loopback source",
    matches: { a: { source_type: "SAME_IP_OR_LOOPBACK" }, b: {} },
    connection: { remoteIp: "127.0.0.1" },
    expected: "a",
  },
  { name: "external source", matches: { a: { source_type: "EXTERNAL" }, b: {} }, expected: "a" },
  { name: "transport protocol", matches: { a: { transport_protocol: "raw_buffer" }, b: {} }, expected: "a" },
  {
    name: "server names, exact before wildcard",
    matches: { a: { server_names: ["*.x.com"] }, b: { server_names: ["a.x.com"] } },
    connection: { serverName: "A.x.com" },
    expected: "b",
  },
  {
    name: "application protocol",
    matches: { a: { application_protocols: ["h2"] }, b: { application_protocols: ["http/1.1"] } },
    connection: { applicationProtocols: ["http/1.1"] },
    expected: "b",
  },
  {
    name: "application protocols, the client's order first",
    matches: { a: { application_protocols: ["istio"] }, b: { application_protocols: ["h2", "istio-h2"] } },
    connection: { applicationProtocols: ["istio-h2", "istio"] },
    expected: "b",
  },
];

for (const { name, matches, connection: properties, expected } of chains) {
  test(`filter chain: ${name}`, () => {
    const filter_chains = Object.entries(matches).map(([chainName, match]) => chain(chainName, match));
    const { listener } = accepted(compile({ filter_chains, default_filter_chain: chain("default") }));
    const offered = { ...connection, ...properties };
    assert.equal(listener.findChain(offered)?.name, expected);
  });
}

test("Envoy's defaults of a connection manager", () => {
  const { listener, routes } = accepted(compile({ filter_chains: [chain("a")] }));
  const network = managerOf(listener.filterChains[0]);
  const { routeTable, filterChain, observers, stats, upgradeTypes, ...rest } = network;
  const plain = Object.fromEntries(Object.entries(rest).filter(([, value]) => typeof value !== "function"));
  assert.deepEqual(plain, { ...connectionManagerDefaults, statPrefix: "s" });
  assert.equal(routeTable.current?.name, "inline");
  assert.deepEqual([filterChain.all.length, observers.end.length, upgradeTypes.size, routes.size], [1, 1, 0, 0]);
  assert.equal(stats.downstreamRequestsTotal.value, 0);
  assert.equal(network.isInternalAddress("127.0.0.1"), false);
  assert.equal(listener.perConnectionBufferLimitBytes, 1024 * 1024);
});

test("settings of a connection manager", () => {
  const settings = {
    server_name: "istio-envoy",
    server_header_transformation: "PASS_THROUGH",
    common_http_protocol_options: { idle_timeout: "1.5s", max_headers_count: 7 },
    stream_idle_timeout: "0s",
    request_timeout: "0.0001s",
    max_request_headers_kb: 1,
    generate_request_id: false,
    strip_any_host_port: true,
    path_with_escaped_slashes_action: "REJECT_REQUEST",
    upgrade_configs: [{ upgrade_type: "WebSocket" }, { upgrade_type: "CONNECT", enabled: false }],
    internal_address_config: { cidr_ranges: [range("10.0.0.0", 8)] },
    forward_client_cert_details: "ALWAYS_FORWARD_ONLY",
  };
  const { listener } = accepted(compile({ filter_chains: [chain("a", undefined, settings)] }));
  const network = managerOf(listener.filterChains[0]);
  assert.equal(network.serverName, "istio-envoy");
  assert.equal(network.serverHeaderTransformation, "pass_through");
  assert.equal(network.connectionIdleTimeoutMs, 1500);
  assert.equal(network.streamIdleTimeoutMs, 0);
  assert.equal(network.requestTimeoutMs, 1, "a time-out never becomes none by rounding");
  assert.deepEqual([network.maxRequestHeadersBytes, network.maxRequestHeadersCount], [1024, 7]);
  assert.equal(network.generateRequestId, false);
  assert.equal(network.stripAnyHostPort, true);
  assert.equal(network.pathWithEscapedSlashesAction, "reject_request");
  assert.deepEqual([...network.upgradeTypes], ["websocket"]);
  assert.equal(network.isInternalAddress("10.9.9.9"), true);
  assert.equal(network.clientCert.mode, "always_forward_only");
});

test("routes by RDS lead to the slot of that name, and the listener asks for it", () => {
  const rds = { route_config_name: "http.8080", config_source: { ads: {} } };
  const { listener, routes } = accepted(compile({ filter_chains: [chain("a", undefined, { rds })] }));
  assert.deepEqual([...routes.keys()], ["http.8080"]);
  assert.equal(managerOf(listener.filterChains[0]).routeTable.name, "http.8080");
  assert.equal(managerOf(listener.filterChains[0]).routeTable.current, undefined);
});

test("access logs: format, filter and file", () => {
  const lines: string[] = [];
  const opened: string[] = [];
  const openAccessLog = (path: string) => {
    opened.push(path);
    return { write: (line: string) => void lines.push(line) };
  };
  const access_log = [
    {
      name: "file",
      filter: { status_code_filter: { comparison: { op: "GE", value: { default_value: 400, runtime_key: "x" } } } },
      typed_config: {
        "@type": type("access_loggers.file.v3.FileAccessLog"),
        path: "/var/log/x",
        log_format: { text_format_source: { inline_string: "%RESPONSE_CODE% %REQ(:path)%\n" } },
      },
    },
    {
      name: "stdout",
      filter: { response_flag_filter: {} },
      typed_config: {
        "@type": type("access_loggers.stream.v3.StdoutAccessLog"),
        log_format: { json_format: { code: "%RESPONSE_CODE%" } },
      },
    },
  ];
  const compiled = accepted(compile({ filter_chains: [chain("a", undefined, { access_log })] }, { openAccessLog }));
  const info = streamInfo(requestHead({ path: "/p" }));
  for (const [code, flags] of [
    [200, 0],
    [404, 0],
    [503, 1],
  ] as const) {
    info.responseCode = code;
    info.responseFlags = flags;
    for (const observer of managerOf(compiled.listener.filterChains[0]).observers.end) observer.onEnd(info);
  }
  assert.deepEqual(opened, ["/var/log/x", "/dev/stdout"]);
  assert.deepEqual(lines, ["404 /p\n", "503 /p\n", '{"code":503}\n']);
});

test("an unknown filter that is optional is skipped with a warning", () => {
  const http_filters = [
    {
      name: "wasm",
      is_optional: true,
      typed_config: { "@type": type("filters.http.local_ratelimit.v3.LocalRateLimit") },
    },
    router,
  ];
  const result = compile({ filter_chains: [chain("a", undefined, { http_filters })] });
  assert.equal(managerOf(accepted(result).listener.filterChains[0]).filterChain.all.length, 1);
  assert.match(problemsOf(result).join(), /Didn't find a registered implementation for 'wasm'.*skipped/);
});

test("several addresses and a listener that is not bound", () => {
  const { listener } = accepted(
    compile({ additional_addresses: [{ address: address(9090) }], bind_to_port: false, filter_chains: [chain("a")] }),
  );
  assert.deepEqual(listener.addresses, [
    { ip: "127.0.0.1", port: 8080 },
    { ip: "127.0.0.1", port: 9090 },
  ]);
  assert.equal(listener.bindToPort, false);
});

const at = "filter_chains[0].filters[0].typed_config";
const refused: readonly {
  readonly name: string;
  readonly json: object;
  readonly expected: readonly (string | RegExp)[];
}[] = [
  { name: "no filter chains", json: {}, expected: ["error adding listener 'l': no filter chains specified"] },
  {
    name: "two chains that match alike",
    json: { filter_chains: [chain("a", { destination_port: 1 }), chain("b", { destination_port: 1 })] },
    expected: [
      /^filter_chains\[1\]: error adding listener 'l': filter chain 'b' has the same matching rules defined as 'a'/,
    ],
  },
  {
    name: "a name for an address",
    json: { address: { socket_address: { address: "localhost", port_value: 1 } }, filter_chains: [chain("a")] },
    expected: ["address.socket_address.address: malformed IP address: localhost"],
  },
  {
    name: "another network filter",
    json: {
      filter_chains: [
        {
          filters: [
            {
              name: "redis",
              typed_config: { "@type": type("filters.http.router.v3.Router") },
            },
          ],
        },
      ],
    },
    expected: [/^filter_chains\[0\]\.filters\[0\]: Didn't find a registered implementation for 'redis'/],
  },
  {
    name: "TLS",
    json: { filter_chains: [{ ...chain("a"), transport_socket: { name: "envoy.transport_sockets.tls" } }] },
    expected: ["filter_chains[0].transport_socket: 'envoy.transport_sockets.tls' is not supported"],
  },
  {
    name: "no terminal filter",
    json: { filter_chains: [chain("a", undefined, { http_filters: [] })] },
    expected: [`${at}.http_filters: a terminal filter is required, such as envoy.filters.http.router`],
  },
  {
    name: "a filter behind the router",
    json: { filter_chains: [chain("a", undefined, { http_filters: [router, { ...router, name: "second" }] })] },
    expected: [
      `${at}.http_filters: Error: terminal filter named envoy.filters.http.router of type envoy.filters.http.router must be the last filter in a http filter chain.`,
    ],
  },
  {
    name: "an unknown filter",
    json: {
      filter_chains: [
        chain("a", undefined, {
          http_filters: [
            { name: "limit", typed_config: { "@type": type("filters.http.local_ratelimit.v3.LocalRateLimit") } },
            router,
          ],
        }),
      ],
    },
    expected: [
      `${at}.http_filters[0]: Didn't find a registered implementation for 'limit' with type URL: 'envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit'`,
    ],
  },
  {
    name: "a type of local replies that would end its line",
    json: {
      filter_chains: [
        chain("a", undefined, {
          local_reply_config: { body_format: { text_format: "a", content_type: "text/html\r\nset-cookie: a=b" } },
        }),
      ],
    },
    expected: [`${at}.local_reply_config.body_format.content_type: control characters are not allowed`],
  },
  {
    name: "fields that would change behaviour",
    json: { filter_chains: [chain("a", undefined, { strip_trailing_host_dot: true, codec_type: "HTTP3" })] },
    expected: [
      `${at}.strip_trailing_host_dot: this field is not supported`,
      `${at}.codec_type: only AUTO, HTTP1 and HTTP2 are supported`,
    ],
  },
  {
    name: "an inline route to a cluster that is not there",
    json: {
      filter_chains: [
        chain("a", undefined, {
          route_config: {
            name: "r",
            virtual_hosts: [
              { name: "v", domains: ["*"], routes: [{ match: { prefix: "/" }, route: { cluster: "missing" } }] },
            ],
          },
        }),
      ],
    },
    expected: [`${at}.route_config.virtual_hosts[0].routes[0].route.cluster: route: unknown cluster 'missing'`],
  },
  {
    name: "an unknown access log",
    json: { filter_chains: [chain("a", undefined, { access_log: [{ name: "grpc" }] })] },
    expected: [`${at}.access_log[0]: Didn't find a registered implementation for 'grpc' with type URL: ''`],
  },
  {
    name: "an unknown listener filter",
    json: {
      listener_filters: [{ name: "dst", typed_config: { "@type": type("filters.http.router.v3.Router") } }],
      filter_chains: [chain("a")],
    },
    expected: [/^listener_filters\[0\]: Didn't find a registered implementation for 'dst'/],
  },
  {
    name: "a hello that is larger than any",
    json: {
      listener_filters: [
        {
          name: "tls",
          typed_config: {
            "@type": type("filters.listener.tls_inspector.v3.TlsInspector"),
            max_client_hello_size: 16385,
          },
        },
      ],
      filter_chains: [chain("a")],
    },
    expected: [
      "listener_filters[0].typed_config.max_client_hello_size: max_client_hello_size of 16385 is greater than maximum of 16384.",
    ],
  },
  {
    name: "a client certificate that nothing would verify",
    json: {
      filter_chains: [
        {
          ...chain("a"),
          transport_socket: {
            name: "tls",
            typed_config: {
              "@type": type("transport_sockets.tls.v3.DownstreamTlsContext"),
              require_client_certificate: true,
              require_sni: true,
              common_tls_context: {
                tls_certificate_sds_secret_configs: [{ name: "default", sds_config: { ads: {} } }],
              },
            },
          },
        },
      ],
    },
    expected: [
      /require_sni: this field is not supported/,
      /require_client_certificate: there is no validation context to verify client certificates with/,
    ],
  },
  {
    name: "a server without a certificate",
    json: {
      filter_chains: [
        {
          ...chain("a"),
          transport_socket: {
            name: "tls",
            typed_config: { "@type": type("transport_sockets.tls.v3.DownstreamTlsContext"), common_tls_context: {} },
          },
        },
      ],
    },
    expected: [
      "filter_chains[0].transport_socket.typed_config: Server TlsCertificates must have a certificate specified",
    ],
  },
];

for (const { name, json, expected } of refused) {
  test(`refused: ${name}`, () => {
    const problems = problemsOf(compile(json)).filter((problem) => !problem.includes("occurs more than once"));
    assert.equal(problems.length, expected.length, problems.join("\n"));
    for (const [index, want] of expected.entries()) {
      if (typeof want === "string") assert.equal(problems[index], want);
      else assert.match(problems[index]!, want);
    }
  });
}
