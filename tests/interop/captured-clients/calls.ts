// What unmodified programs with their defaults do in a captured pod, and what each prints of it.
import { destinations, outside, server, services } from "./destinations.ts";

/** Paths of the programs that are built or fetched for it. */
export interface ForeignPrograms {
  readonly go: string;
  readonly python: string;
  readonly psql: string;
  readonly grpcGo: string;
  /** With its options, up to the name of the class. */
  readonly grpcJava: string;
  readonly grpcPython: string;
}

export interface ForeignCall {
  readonly name: string;
  /** For a shell. */
  readonly command: string;
  /** Lines. */
  readonly expected: readonly string[];
}

const hosts = destinations.map(({ host }) => host);
const folder = import.meta.dirname;
const forEachHost = (command: string): string => `for host in ${hosts.join(" ")}; do ${command} || exit 1; done`;
const each = (line: string): readonly string[] => destinations.map(() => line);
const grpcCases = ["empty_unary", "large_unary", "server_streaming", "ping_pong"];
const pythonCases = ["health", "reflection"];

function http(name: string, command: string, program: string): ForeignCall {
  const urls = hosts.map((host) => `http://${host}/${program}`);
  return {
    name,
    command: `${command} ${urls.join(" ")}`,
    expected: destinations.map(({ answer }) => `/${program} ${answer}`),
  };
}

const isEncrypted = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
const sql = (psql: string, query: string, options = ""): string =>
  `${psql} -XtA "host=$host user=tulle dbname=postgres ${options}" -c "${query}"`;

export function foreignCalls(programs: ForeignPrograms): readonly ForeignCall[] {
  const { go, python, psql, grpcGo, grpcJava, grpcPython } = programs;
  const passed = (cases: readonly string[]): readonly string[] =>
    destinations.flatMap(() => cases.map((name) => `passed ${name}`));
  return [
    http("curl", "curl -sS", "curl"),
    http("wget", "wget -qO-", "wget"),
    http("Python's requests", `${python} ${folder}/get.py`, "requests"),
    http("Go's net/http", go, "go"),
    http("Java's HttpClient", `java ${folder}/Get.java`, "java"),
    http("Node's fetch", `${process.execPath} ${folder}/get.mjs`, "fetch"),
    { name: "psql, which prefers TLS", command: forEachHost(sql(psql, isEncrypted)), expected: each("t") },
    {
      name: "psql without TLS",
      command: forEachHost(sql(psql, isEncrypted, "sslmode=disable")),
      expected: each("f"),
    },
    {
      name: "psql reads 8 MB",
      command: forEachHost(`${sql(psql, "select repeat('0123456789', 800000)")} | md5sum`),
      expected: each("d6fe7c61e79aa79b346d69b3de3f5ab9  -"),
    },
    { name: "redis-cli", command: forEachHost("redis-cli -h $host ping"), expected: each("PONG") },
    {
      name: "redis-cli, a pipeline of 2,000 commands",
      command: forEachHost("yes 'INCR n' | head -n 2000 | redis-cli -h $host --pipe | tail -n 1"),
      expected: each("errors: 0, replies: 2000"),
    },
    {
      name: "gRPC in Go",
      command: forEachHost(`${grpcGo} call $host:9000 $host:9000 ${grpcCases.join(" ")}`),
      expected: passed(grpcCases),
    },
    {
      name: "gRPC in Java",
      command: forEachHost(
        `${grpcJava} --server_host=$host --server_port=9000 --use_tls=false -- ${grpcCases.join(" ")} | grep ^passed`,
      ),
      expected: passed(grpcCases),
    },
    {
      name: "gRPC in Python",
      command: forEachHost(`${grpcPython} call $host:9000 $host:9000 ${pythonCases.join(" ")}`),
      expected: passed(pythonCases),
    },
    {
      name: "dig, by UDP",
      command: `dig +short four.shop.svc.cluster.local ${outside.four.host}; dig +short AAAA six.shop.svc.cluster.local AAAA ${outside.six.host}`,
      expected: destinationAddresses(),
    },
    {
      name: "dig, by UDP over IPv6 and by TCP",
      command: `dig +short @fd96::53 four.shop.svc.cluster.local; dig +short +tcp AAAA six.shop.svc.cluster.local`,
      expected: [services.four.address, services.six.address],
    },
  ];
}

function destinationAddresses(): readonly string[] {
  return [services.four.address, outside.four.address, services.six.address, outside.six.address];
}

const plainAt = (address: string): string => (address.includes(":") ? `[${address}]` : address);

/** From the machine outside: with neither a sidecar nor a certificate. */
export function plainCalls({ psql, grpcGo }: ForeignPrograms): readonly ForeignCall[] {
  return [server.four, server.six].flatMap((address) =>
    [
      { name: "curl", command: `curl -sS -g http://${plainAt(address)}:8080/` },
      { name: "curl to a port of no Service", command: `curl -sS -g http://${plainAt(address)}:8081/` },
      { name: "psql", command: `host=${address}; ${sql(psql, "select 1")}` },
      { name: "redis-cli", command: `redis-cli -h ${address} ping` },
      { name: "gRPC", command: `${grpcGo} call ${plainAt(address)}:9000 server empty_unary` },
    ].map(({ name, command }) => ({ name: `plain ${name} to ${address}`, command, expected: ["failed"] })),
  );
}

/** Of a captured workload that the server's policy does not name; requests would go by connections that are there. */
export function forbiddenCalls({ psql }: ForeignPrograms): readonly ForeignCall[] {
  return [services.four, services.six].flatMap(({ host }) => [
    {
      name: `psql to ${host} as somebody else`,
      command: `host=${host}; ${sql(psql, "select 1")}`,
      expected: ["failed"],
    },
    { name: `redis-cli to ${host} as somebody else`, command: `redis-cli -h ${host} ping`, expected: ["failed"] },
  ]);
}
