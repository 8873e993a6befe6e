// Runs one proxy, ours or a stock Envoy, in a network namespace of its own: started by `unshare --net`, it lets the
// kernel redirect connections to the proxy's listeners, and prints which of them answered each, as JSON.
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { NetworkNamespace } from "../../../../tests/tools/network-namespace.ts";
import { connectionManager, extension } from "./envoy-json.ts";
import { countersOf, startEnvoy, startOurs } from "./parity-pair.ts";
import { destinationPort, type RedirectedDial, redirectedDials, type RedirectedOutcome } from "./redirected-dials.ts";

const rules = `
table inet stage {
  chain output {
    type nat hook output priority -100;
    ip saddr 127.0.0.6 return
    ip6 saddr ::6 return
    ip daddr 10.99.1.0/24 meta l4proto tcp redirect to :15003
    ip daddr { 10.99.2.0/24, 127.0.0.9 } meta l4proto tcp redirect to :15004
    ip6 daddr fd99::/16 meta l4proto tcp redirect to :15003
    ip daddr 10.96.0.0/16 meta l4proto tcp redirect to :15001
    ip daddr 10.97.0.0/16 meta l4proto tcp redirect to :15006
    ip daddr 10.98.0.0/16 meta l4proto tcp redirect to :15002
    ip6 daddr fd96::/16 meta l4proto tcp redirect to :15001
    ip6 daddr fd98::/16 meta l4proto tcp redirect to :15002
  }
}
`;
const commands = [
  "link set lo up",
  "route add local 10.96.0.0/14 dev lo",
  "-6 route add local fd96::/16 dev lo",
  "-6 route add local fd98::/15 dev lo",
  // What the machine is called from, and beside it the one that nobody takes without asking for it.
  "-6 address add fd01::1/128 dev lo",
  "-6 address add ::6/128 dev lo preferred_lft 0",
];

const at = (address: string, port_value: number, more: object = {}): object => ({
  socket_address: { address, port_value, ...more },
});
const filter = (kind: string, type: string): object => ({
  name: kind,
  typed_config: { "@type": extension(`filters.listener.${kind}.v3.${type}`) },
});
const originalDst = filter("original_dst", "OriginalDst");
const tlsInspector = filter("tls_inspector", "TlsInspector");
const httpInspector = filter("http_inspector", "HttpInspector");

/** Answers every request with its own name, and with the addresses of the client's connection. */
function chain(name: string, filter_chain_match?: object): object {
  const seen = "%DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_DIRECT_LOCAL_ADDRESS%";
  const route = {
    match: { prefix: "/" },
    direct_response: { status: 200, body: { inline_string: name } },
    response_headers_to_add: [{ header: { key: "x-seen", value: seen } }],
  };
  return {
    name,
    ...(filter_chain_match !== undefined && { filter_chain_match }),
    filters: [{ name: "http", typed_config: connectionManager([route]) }],
  };
}

const range = (address_prefix: string, prefix_len: number): object => ({ address_prefix, prefix_len });
const handedOver = (name: string, address: object, more: object = {}): object => ({
  name,
  address,
  bind_to_port: false,
  filter_chains: [chain(name)],
  ...more,
});

/** Sources by which connections of the proxy's own are known, and let pass. */
const sources = {
  source_address: { address: "127.0.0.6", port_value: 0 },
  extra_source_addresses: [{ address: { address: "::6", port_value: 0 } }],
};
const originalDstCluster = (name: string, original_dst_lb_config?: object): object => ({
  name,
  type: "ORIGINAL_DST",
  lb_policy: "CLUSTER_PROVIDED",
  upstream_bind_config: sources,
  ...(original_dst_lb_config && { original_dst_lb_config }),
});
const clusters = [
  originalDstCluster("all"),
  originalDstCluster("header", { use_http_header: true }),
  originalDstCluster("port", { upstream_port_override: destinationPort }),
];
const routeTo = (name: string): object => ({
  match: { prefix: `/${name}` },
  route: { cluster: name === "" ? "all" : name },
});
const tcpProxy = {
  "@type": extension("filters.network.tcp_proxy.v3.TcpProxy"),
  stat_prefix: "tcp",
  cluster: "all",
};

const listeners = [
  {
    name: "outbound",
    address: at("0.0.0.0", 15_001),
    additional_addresses: [{ address: at("::", 15_001) }],
    use_original_dst: true,
    filter_chains: [
      chain("own port", { destination_port: 15_001 }),
      chain("range", { prefix_ranges: [range("10.96.9.0", 24)] }),
    ],
    default_filter_chain: chain("outbound"),
  },
  {
    name: "both families",
    address: at("::", 15_002, { ipv4_compat: true }),
    use_original_dst: true,
    default_filter_chain: chain("both families"),
  },
  {
    name: "inbound",
    address: at("0.0.0.0", 15_006),
    listener_filters: [originalDst, tlsInspector, httpInspector],
    filter_chains: [
      chain("inbound 80", { destination_port: 80, application_protocols: ["http/1.1"] }),
      chain("inbound other", { prefix_ranges: [range("0.0.0.0", 0)] }),
    ],
  },
  handedOver("exact", at("10.96.0.1", 80)),
  handedOver("any", at("0.0.0.0", 80)),
  handedOver("exact 6", at("fd96:0:0:0::1", 80)),
  handedOver("any 6", at("::", 80)),
  handedOver("inspected", at("0.0.0.0", 83), {
    listener_filters: [tlsInspector, httpInspector],
    filter_chains: [chain("not HTTP", { application_protocols: ["h2c"] }), chain("inspected")],
  }),
  // Whoever has been handed a connection has its address, and keeps it.
  handedOver("inbound of 84", at("0.0.0.0", 84), { use_original_dst: true }),
  {
    name: "TCP to its destination",
    address: at("0.0.0.0", 15_003),
    additional_addresses: [{ address: at("::", 15_003) }],
    use_original_dst: true,
    default_filter_chain: { filters: [{ name: "tcp", typed_config: tcpProxy }] },
  },
  {
    name: "HTTP to its destination",
    address: at("0.0.0.0", 15_004),
    use_original_dst: true,
    default_filter_chain: {
      filters: [{ name: "http", typed_config: connectionManager(["header", "port", ""].map(routeTo)) }],
    },
  },
  { name: "bound", address: at("127.0.0.1", 15_085), filter_chains: [chain("bound")] },
];

/** The answer's body, and `x-seen` of a listener's own. */
function dial({ host, port, path: target = "/", headers = {} }: RedirectedDial): Promise<string> {
  return new Promise((resolve) => {
    const request = http.get({ host, port, path: target, headers, agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
      const seen = response.headers["x-seen"];
      response.on("end", () => resolve(seen === undefined ? body : `${body}, ${String(seen)}`));
    });
    request.on("error", () => resolve("closed"));
  });
}

/** At every address of the machine: says which one a request has come to, and from where. */
function listenAtDestinations(): Promise<http.Server> {
  const server = http.createServer(({ socket }, response) => {
    const [to, from] = [socket.localAddress, socket.remoteAddress].map((ip) => ip!.replace("::ffff:", ""));
    response.end(`reached ${to} from ${from}`);
  });
  return new Promise((resolve) => server.listen(destinationPort, "::", () => resolve(server)));
}

const network = NetworkNamespace.current();
for (const command of commands) await network.mustRun("ip", ...command.split(" "));
await network.mustRun("nft", rules);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-redirected-"));
const bootstrap = (): string =>
  JSON.stringify({ admin: { address: at("127.0.0.1", 0) }, static_resources: { listeners, clusters } });
const isOurs = process.argv[2] === "ours";
const proxy = isOurs
  ? await startOurs(path.join(folder, "ours.log"), bootstrap)
  : await startEnvoy(folder, listeners.length, bootstrap);
const server = await listenAtDestinations();
const answers: Record<string, string> = {};
for (const each of redirectedDials.filter(({ loopsAtEnvoy = false }) => isOurs || !loopsAtEnvoy))
  answers[each.name] = await dial(each);
const counters = await countersOf(proxy, /^cluster\.(all|header|port)\.(original_dst|upstream_cx_none)/);
await proxy.stop();
server.close();
fs.rmSync(folder, { recursive: true });
process.stdout.write(`${JSON.stringify({ answers, counters } satisfies RedirectedOutcome)}\n`);
