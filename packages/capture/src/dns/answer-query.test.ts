// Which question gets which answer, as Kubernetes' own name server and Istio's agent give it.
import assert from "node:assert/strict";
import { test } from "node:test";
import packet from "dns-packet";
import { answerQuery } from "./answer-query.ts";
import { readQuery, responseCode, writeAnswer } from "./dns-message.ts";
import { type NameEntry, NameTable } from "./name-table.ts";

const entries: readonly NameEntry[] = [
  {
    hostname: "catalog.shop.svc.cluster.local",
    addresses: ["10.96.0.7", "fd00::7"],
    isKubernetes: true,
    ports: [
      { name: "http", protocol: "tcp", port: 80 },
      { name: "grpc", protocol: "tcp", port: 9000 },
    ],
  },
  {
    hostname: "users.people.svc.cluster.local",
    addresses: ["10.96.0.8"],
    isKubernetes: true,
  },
  {
    hostname: "database.shop.svc.cluster.local",
    addresses: ["10.244.0.5", "10.244.1.6"],
    isKubernetes: true,
    ports: [{ name: "sql", protocol: "tcp", port: 5432 }],
    targets: ["database-0.database.shop.svc.cluster.local", "database-1.database.shop.svc.cluster.local"],
  },
  {
    hostname: "database-0.database.shop.svc.cluster.local",
    addresses: ["10.244.0.5"],
    isKubernetes: true,
  },
  {
    hostname: "database-1.database.shop.svc.cluster.local",
    addresses: ["10.244.1.6"],
    isKubernetes: true,
  },
  { hostname: "API.example.com", addresses: ["240.240.0.1", "10.0.0.0/8"] },
  { hostname: "*.wild.example", addresses: ["240.240.0.2"] },
];
const names = new NameTable(entries, {
  namespace: "shop",
  serviceDomain: "svc.cluster.local",
  searchDomains: () => ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.example"],
});

/** `undefined`: passed on. Otherwise the code, the answer's records, and those beside it. */
function ask(name: string, type: packet.RecordType | "ANY", ownDomains: readonly string[] = []): unknown {
  const query = packet.encode({ type: "query", id: 1, questions: [{ name, type: type === "ANY" ? "A" : type }] });
  if (type === "ANY") query.writeUInt16BE(255, query.length - 4);
  const read = readQuery(query);
  assert.ok(typeof read === "object");
  const answer = answerQuery(read.query, { names, ownDomains, turn: 0 });
  if (answer === undefined) return undefined;
  const decoded = packet.decode(writeAnswer(query, read.query, answer, 4096));
  const texts = (records: packet.Answer[] = []): string[] =>
    records.map((record) => {
      const owner = record.name === name ? "" : `${record.name} `;
      if (record.type === "SRV") return `${owner}SRV ${record.data.port} ${record.data.target}`;
      assert.ok(record.type === "A" || record.type === "AAAA" || record.type === "CNAME" || record.type === "PTR");
      return `${owner}${record.type} ${record.data}`;
    });
  const code = { [responseCode.noError]: "NOERROR", [responseCode.nameError]: "NXDOMAIN" }[decoded.flags! & 0xf];
  return [code, ...texts(decoded.answers), ...texts(decoded.additionals).map((text) => `+ ${text}`)];
}

const rows: readonly (readonly [
  name: string,
  type: packet.RecordType | "ANY",
  expected: readonly string[] | undefined,
])[] = [
  ["catalog.shop.svc.cluster.local", "A", ["NOERROR", "A 10.96.0.7"]],
  ["catalog.shop.svc.cluster.local", "AAAA", ["NOERROR", "AAAA fd00::7"]],
  ["catalog.shop.svc.cluster.local", "ANY", ["NOERROR", "A 10.96.0.7", "AAAA fd00::7"]],
  ["catalog", "A", ["NOERROR", "A 10.96.0.7"]],
  ["CATALOG.Shop", "A", ["NOERROR", "A 10.96.0.7"]],
  ["catalog.shop.svc", "A", ["NOERROR", "A 10.96.0.7"]],
  // Of another namespace there is no name of one word.
  ["users", "A", undefined],
  ["users.people", "A", ["NOERROR", "A 10.96.0.8"]],
  // It has none; "no such name" would hold for its other addresses, too.
  ["users.people.svc.cluster.local", "AAAA", ["NOERROR"]],
  ["users.people.svc.cluster.local", "TXT", ["NOERROR"]],
  ["database.shop", "A", ["NOERROR", "A 10.244.0.5", "A 10.244.1.6"]],
  ["database-1.database.shop.svc.cluster.local", "A", ["NOERROR", "A 10.244.1.6"]],
  ["database-1.database", "A", ["NOERROR", "A 10.244.1.6"]],
  ["api.example.com", "A", ["NOERROR", "A 240.240.0.1"]],
  ["a.b.wild.example", "A", ["NOERROR", "A 240.240.0.2"]],
  ["wild.example", "A", undefined],
  // Resolvers put a search domain behind a name of few dots before they ask for it as it is (resolv.conf: ndots).
  [
    "api.example.com.shop.svc.cluster.local",
    "A",
    ["NOERROR", "CNAME api.example.com", "api.example.com A 240.240.0.1"],
  ],
  ["api.example.com.corp.example", "AAAA", ["NOERROR", "CNAME api.example.com"]],
  ["catalog.corp.example", "A", undefined],
  ["example.org", "A", undefined],
  ["nothing.shop.svc.cluster.local", "A", undefined],
  [
    "_http._tcp.catalog.shop.svc.cluster.local",
    "SRV",
    [
      "NOERROR",
      "SRV 80 catalog.shop.svc.cluster.local",
      "+ catalog.shop.svc.cluster.local A 10.96.0.7",
      "+ catalog.shop.svc.cluster.local AAAA fd00::7",
    ],
  ],
  ["_http._udp.catalog.shop.svc.cluster.local", "SRV", ["NXDOMAIN"]],
  ["_http._tcp.catalog.shop.svc.cluster.local", "A", ["NOERROR"]],
  ["_sql._tcp.nowhere.example", "SRV", undefined],
  [
    "_sql._tcp.database.shop.svc.cluster.local",
    "SRV",
    [
      "NOERROR",
      "SRV 5432 database-0.database.shop.svc.cluster.local",
      "SRV 5432 database-1.database.shop.svc.cluster.local",
      "+ database-0.database.shop.svc.cluster.local A 10.244.0.5",
      "+ database-1.database.shop.svc.cluster.local A 10.244.1.6",
    ],
  ],
  ["users.people.svc.cluster.local", "SRV", ["NOERROR"]],
  ["7.0.96.10.in-addr.arpa", "PTR", ["NOERROR", "PTR catalog.shop.svc.cluster.local"]],
  ["6.1.244.10.in-addr.arpa", "PTR", ["NOERROR", "PTR database-1.database.shop.svc.cluster.local"]],
  [
    "7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa",
    "PTR",
    ["NOERROR", "PTR catalog.shop.svc.cluster.local"],
  ],
  ["1.1.1.1.in-addr.arpa", "PTR", undefined],
  ["999.0.96.10.in-addr.arpa", "PTR", undefined],
];
for (const [name, type, expected] of rows) {
  test(`${type} ${name}: ${expected?.join(", ") ?? "asked elsewhere"}`, () => {
    assert.deepEqual(ask(name, type), expected);
  });
}

test("of a domain that nobody else knows, what is not in the table is nothing", () => {
  assert.deepEqual(ask("nothing.shop.svc.cluster.local", "A", ["cluster.local"]), ["NXDOMAIN"]);
  assert.deepEqual(ask("0.shop.svc.cluster.local", "A", ["cluster.local"]), ["NXDOMAIN"]);
  assert.equal(ask("notcluster.local", "A", ["cluster.local"]), undefined);
});

test("a domain that names lie in is there, if without records of its own", () => {
  for (const domain of ["cluster.local", "svc.cluster.local", "shop.svc.cluster.local", "people.svc.cluster.local"]) {
    assert.deepEqual(ask(domain, "A", ["cluster.local"]), ["NOERROR"]);
  }
});

test("each answer begins with another address", () => {
  const read = readQuery(packet.encode({ type: "query", id: 1, questions: [{ name: "database", type: "A" }] }));
  assert.ok(typeof read === "object");
  const first = [0, 1, 2].map((turn) =>
    answerQuery(read.query, { names, ownDomains: [], turn })?.answers[0]?.data?.join("."),
  );
  assert.deepEqual(first, ["10.244.0.5", "10.244.1.6", "10.244.0.5"]);
});
