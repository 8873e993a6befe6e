// DNS messages beside a library that others use: what it writes we read, what we write it reads; and nothing that a
// stranger sends does more than be refused.
import assert from "node:assert/strict";
import { test } from "node:test";
import packet from "dns-packet";
import fc from "fast-check";
import { isAnswerTo, readQuery, recordType, refuse, responseCode, writeAnswer } from "./dns-message.ts";

const question = (name: string, type: packet.RecordType, extra: Partial<packet.Packet> = {}): Buffer =>
  packet.encode({
    type: "query",
    id: 4711,
    flags: packet.RECURSION_DESIRED,
    questions: [{ type, name }],
    ...extra,
  });

const opt = (udpPayloadSize: number, ednsVersion = 0): Partial<packet.Packet> => ({
  additionals: [
    { type: "OPT", name: ".", udpPayloadSize, extendedRcode: 0, ednsVersion, flags: 0, flag_do: false, options: [] },
  ],
});

test("what the library asks is read as it asked it", () => {
  const label = fc.stringMatching(/^[a-zA-Z0-9_][a-zA-Z0-9_-]{0,20}$/);
  const names = fc.array(label, { minLength: 1, maxLength: 8 }).map((labels) => labels.join("."));
  const types = fc.constantFrom("A" as const, "AAAA" as const, "SRV" as const, "PTR" as const, "TXT" as const);
  fc.assert(
    fc.property(names, types, fc.option(fc.integer({ min: 1, max: 65_535 })), (name, type, payload) => {
      const read = readQuery(question(name, type, payload === null ? {} : opt(payload)));
      assert.ok(typeof read === "object");
      assert.equal(read.query.name, name.toLowerCase());
      assert.equal(read.query.type, { A: 1, AAAA: 28, SRV: 33, PTR: 12, TXT: 16 }[type]);
      assert.equal(read.query.maxDatagramBytes, payload === null ? 512 : Math.min(4096, Math.max(512, payload)));
      assert.equal(read.query.ednsVersion, payload === null ? undefined : 0);
    }),
  );
});

const kinds: readonly { readonly name: string; readonly message: Buffer; readonly kind: string }[] = [
  { name: "nothing", message: Buffer.alloc(0), kind: "noQuery" },
  { name: "eleven bytes", message: Buffer.alloc(11), kind: "noQuery" },
  { name: "an answer", message: packet.encode({ type: "response", id: 1 }), kind: "noQuery" },
  { name: "no question", message: packet.encode({ type: "query", id: 1 }), kind: "malformed" },
  {
    name: "two questions",
    message: packet.encode({
      type: "query",
      questions: [
        { type: "A", name: "a" },
        { type: "A", name: "b" },
      ],
    }),
    kind: "malformed",
  },
  { name: "a transfer of a zone", message: question("a.b", "AXFR"), kind: "transfer" },
  {
    name: "a transfer of what is new in a zone",
    message: question("a.b", "IXFR", { authorities: [{ type: "A", name: "a.b", data: "10.0.0.1" }] }),
    kind: "transfer",
  },
  { name: "a notification", message: question("a.b", "SOA", { flags: 4 << 11 }), kind: "foreign" },
  { name: "an update", message: question("a.b", "A", { flags: 5 << 11 }), kind: "foreign" },
  {
    name: "another class",
    message: packet.encode({ type: "query", questions: [{ type: "TXT", name: "version.bind", class: "CH" }] }),
    kind: "foreign",
  },
  {
    name: "a signature behind it",
    message: question("a.b", "A", { additionals: [{ type: "TXT", name: "key", data: "x" }] }),
    kind: "foreign",
  },
  { name: "a name that leads back to itself", message: withName("c00c"), kind: "malformed" },
  { name: "a name without an end", message: withName("0161"), kind: "malformed" },
  { name: "a label longer than 63 bytes", message: withName(`40${"61".repeat(64)}00`), kind: "malformed" },
  { name: "a name longer than 255 bytes", message: withName(`${"0161".repeat(128)}00`), kind: "malformed" },
  { name: "a dot inside a label", message: withName("03612e6200"), kind: "foreign" },
  { name: "bytes that no host has in its name", message: withName("02ff0000"), kind: "foreign" },
  { name: "the root", message: withName("00"), kind: "query" },
];

function withName(hex: string): Buffer {
  return Buffer.from(`126701000001000000000000${hex}00010001`, "hex");
}

for (const { name, message, kind } of kinds) {
  test(`${name}: ${kind}`, () => {
    const read = readQuery(message);
    assert.equal(typeof read === "string" ? read : read.kind, kind);
  });
}

test("whatever comes is read or refused", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
      readQuery(Buffer.from(bytes));
    }),
    { numRuns: 2000 },
  );
});

test("a query with any byte changed is read or refused, and answered within its limit", () => {
  const base = question("_http._tcp.catalog.shop.svc.cluster.local", "SRV", opt(700));
  for (let at = 0; at < base.length; at += 1) {
    for (const value of [0, 1, 0x3f, 0x40, 0xc0, 0xff]) {
      const changed = Buffer.from(base);
      changed[at] = value;
      const read = readQuery(changed);
      if (typeof read === "string") continue;
      const many = Array.from({ length: 400 }, () => ({ type: recordType.A, data: Uint8Array.of(10, 0, 0, 1) }));
      const limit = read.query.maxDatagramBytes;
      const answer = writeAnswer(changed, read.query, { code: responseCode.noError, answers: many }, limit);
      assert.ok(answer.length <= limit);
    }
  }
});

function answerTo(query: Buffer, ...parameters: Parameters<typeof records>): packet.DecodedPacket {
  const read = readQuery(query);
  assert.ok(typeof read === "object");
  const { code, answers, additional, limitBytes } = records(...parameters);
  return packet.decode(writeAnswer(query, read.query, { code, answers, additional }, limitBytes));
}

const records = (
  answers: Parameters<typeof writeAnswer>[2]["answers"],
  {
    code = 0,
    additional = [],
    limitBytes = 512,
  }: {
    code?: number;
    additional?: Parameters<typeof writeAnswer>[2]["answers"];
    limitBytes?: number;
  } = {},
): { code: number; answers: typeof answers; additional: typeof answers; limitBytes: number } => ({
  code,
  answers,
  additional,
  limitBytes,
});

test("the library reads what we answer", () => {
  const query = question("CaTalog.Shop", "A", opt(1232));
  const answer = answerTo(query, [
    { type: recordType.CNAME, target: "catalog.shop.svc.cluster.local" },
    { name: "catalog.shop.svc.cluster.local", type: recordType.A, data: Uint8Array.of(10, 1, 2, 3) },
  ]);
  assert.equal(answer.id, 4711);
  assert.deepEqual(answer.questions, [{ name: "CaTalog.Shop", type: "A", class: "IN" }]);
  const { flag_qr, flag_aa, flag_tc, flag_rd, flag_ra, flags } = answer;
  assert.deepEqual(
    { flag_qr, flag_aa, flag_tc, flag_rd, flag_ra, code: flags! & 0xf },
    { flag_qr: true, flag_aa: true, flag_tc: false, flag_rd: true, flag_ra: true, code: responseCode.noError },
  );
  assert.deepEqual(
    answer.answers?.map((record) => ({ name: record.name, type: record.type, data: "data" in record && record.data })),
    [
      { name: "CaTalog.Shop", type: "CNAME", data: "catalog.shop.svc.cluster.local" },
      { name: "catalog.shop.svc.cluster.local", type: "A", data: "10.1.2.3" },
    ],
  );
  assert.equal(answer.additionals?.[0]?.type, "OPT");
});

test("a service's record carries priority, weight and port before its name", () => {
  const data = Uint8Array.of(0, 0, 0, 100, 0x1f, 0x90);
  const answer = answerTo(
    question("_http._tcp.a.b", "SRV"),
    [{ type: recordType.SRV, data, target: "a.b.svc.cluster.local" }],
    { additional: [{ name: "a.b.svc.cluster.local", type: recordType.AAAA, data: new Uint8Array(16) }] },
  );
  const [service] = answer.answers ?? [];
  assert.ok(service?.type === "SRV");
  assert.deepEqual(service.data, { priority: 0, weight: 100, port: 8080, target: "a.b.svc.cluster.local" });
  assert.equal(answer.additionals?.[0]?.name, "a.b.svc.cluster.local");
});

test("who asks for signatures is told that this was understood", () => {
  const asked = question("a.b", "A", {
    additionals: [{ ...opt(1232).additionals![0]!, flags: 0x80_00 } as packet.Answer],
  });
  const flags = (query: Buffer): unknown => {
    const [record] = answerTo(query, []).additionals ?? [];
    return record?.type === "OPT" && record.flags;
  };
  assert.equal(flags(asked), 0x80_00);
  assert.equal(flags(question("a.b", "A", opt(1232))), 0);
});

test("an answer that is too long ends with a whole record, and says so", () => {
  const addresses = Array.from({ length: 100 }, (_, index) => ({
    type: recordType.A,
    data: Uint8Array.of(10, 0, 0, index),
  }));
  const query = question("many.shop", "A");
  const cut = answerTo(query, addresses);
  assert.equal(cut.flag_tc, true);
  // 12 of the header, 15 of the question, 16 for each record.
  assert.equal(cut.answers?.length, Math.floor((512 - 12 - 15) / 16));
  const whole = answerTo(query, addresses, { limitBytes: 65_535 });
  assert.equal(whole.flag_tc, false);
  assert.equal(whole.answers?.length, 100);
});

test("records beside the answer are left out without a word", () => {
  const additional = Array.from({ length: 100 }, (_, index) => ({
    name: `pod-${index}.many.shop.svc.cluster.local`,
    type: recordType.A,
    data: Uint8Array.of(10, 0, 0, index),
  }));
  const answer = answerTo(question("many.shop", "A"), [{ type: recordType.A, data: new Uint8Array(4) }], {
    additional,
  });
  assert.equal(answer.flag_tc, false);
  assert.ok(answer.additionals!.length > 0 && answer.additionals!.length < 100);
});

test("a refusal is the header alone", () => {
  const answer = packet.decode(refuse(question("a.b", "A"), responseCode.formatError));
  assert.equal(answer.id, 4711);
  assert.equal(answer.flags! & 0xf, responseCode.formatError);
  assert.equal(answer.flag_aa, false);
});

test("only the same question under the same number is an answer", () => {
  const query = question("a.example", "A");
  const answer = (id: number, name: string, type: "query" | "response" = "response"): Buffer =>
    packet.encode({ type, id, questions: [{ type: "A", name }] });
  assert.ok(isAnswerTo(answer(4711, "a.example"), query));
  assert.ok(!isAnswerTo(answer(4712, "a.example"), query));
  assert.ok(isAnswerTo(answer(4711, "A.Example"), query), "some servers do not keep the spelling");
  assert.ok(
    !isAnswerTo(packet.encode({ type: "response", id: 4711, questions: [{ type: "AAAA", name: "a.example" }] }), query),
  );
  assert.ok(!isAnswerTo(answer(4711, "b.example"), query));
  assert.ok(!isAnswerTo(answer(4711, "a.example", "query"), query));
  assert.ok(!isAnswerTo(answer(4711, "a.example").subarray(0, 20), query));
  assert.ok(isAnswerTo(refuse(query, responseCode.formatError), query), "a server that cannot read it");
  assert.ok(!isAnswerTo(refuse(query, responseCode.noError), query));
});
