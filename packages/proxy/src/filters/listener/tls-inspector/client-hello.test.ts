// The first bytes of TLS clients: OpenSSL's own hellos however they are cut, what is no hello, and hellos that have
// been tampered with, which OpenSSL has the last word on.
import assert from "node:assert/strict";
import net from "node:net";
import { test } from "node:test";
import tls from "node:tls";
import fc from "fast-check";
import { helloOf } from "../../../testing/captured-hello.ts";
import { extension, helloFrom, inRecordsOf, serverName, versions } from "../../../testing/made-hello.ts";
import { type ClientHelloOutcome, ClientHelloReader } from "./client-hello.ts";

const hellos: readonly { readonly name: string; readonly options: tls.ConnectionOptions; readonly expected: object }[] =
  [
    {
      name: "a name and protocols",
      options: { servername: "Shop.example", ALPNProtocols: ["istio", "http/1.1"] },
      expected: { serverName: "Shop.example", applicationProtocols: ["istio", "http/1.1"] },
    },
    { name: "neither", options: {}, expected: { serverName: "", applicationProtocols: [] } },
    {
      name: "TLS 1.2",
      options: { maxVersion: "TLSv1.2", servername: "a" },
      expected: { serverName: "a", applicationProtocols: [] },
    },
    {
      name: "many protocols, in a hello of several thousand bytes",
      options: { ALPNProtocols: Array.from({ length: 60 }, (_, index) => `${index}-${"p".repeat(80)}`) },
      expected: {
        serverName: "",
        applicationProtocols: Array.from({ length: 60 }, (_, index) => `${index}-${"p".repeat(80)}`),
      },
    },
  ];

for (const { name, options, expected } of hellos) {
  test(`OpenSSL's hello: ${name}`, async () => {
    const hello = await helloOf(options);
    assert.partialDeepStrictEqual(new ClientHelloReader().read(hello), { type: "hello", ...expected });
    for (let length = 0; length < hello.length; length += 1) {
      assert.equal(
        new ClientHelloReader().read(hello.subarray(0, length)).type,
        "incomplete",
        `the first ${length} bytes`,
      );
    }
    for (const size of [1, 7, 1000]) {
      const records = inRecordsOf(hello, size);
      const reader = new ClientHelloReader();
      const found = Array.from(records, (_, index) => reader.read(records.subarray(0, index + 1)));
      assert.partialDeepStrictEqual(found.pop(), { type: "hello", ...expected }, `byte by byte in records of ${size}`);
      assert.ok(found.every(({ type }) => type === "incomplete"));
    }
    // What follows is another message's.
    assert.equal(new ClientHelloReader().read(Buffer.concat([hello, Buffer.from([22, 3, 3, 0])])).type, "hello");
    for (const size of [1, 2, 3, 5, 100])
      assert.deepEqual(new ClientHelloReader().read(inRecordsOf(hello, size)).type, "hello");
  });
}

const made: readonly {
  readonly name: string;
  readonly input: Buffer;
  readonly expected: ClientHelloOutcome["type"];
}[] = [
  { name: "no extensions", input: helloFrom({}), expected: "hello" },
  {
    name: "an unknown extension",
    input: helloFrom({ extensions: extension(0xfafa, Buffer.alloc(3)) }),
    expected: "hello",
  },
  {
    name: "an extension twice",
    input: helloFrom({ extensions: Buffer.concat([versions(0x0304), versions(0x0304)]) }),
    expected: "other",
  },
  {
    name: "two names",
    input: helloFrom({ extensions: Buffer.concat([serverName(Buffer.from("a")), serverName(Buffer.from("b"))]) }),
    expected: "other",
  },
  { name: "an empty name", input: helloFrom({ extensions: serverName(Buffer.alloc(0)) }), expected: "other" },
  {
    name: "a name of 255 bytes",
    input: helloFrom({ extensions: serverName(Buffer.alloc(255, "a")) }),
    expected: "hello",
  },
  {
    name: "a name of 256 bytes",
    input: helloFrom({ extensions: serverName(Buffer.alloc(256, "a")) }),
    expected: "other",
  },
  {
    name: "a name with a zero byte",
    input: helloFrom({ extensions: serverName(Buffer.from("a.example\0.b")) }),
    expected: "other",
  },
  {
    name: "a name of another type",
    input: helloFrom({ extensions: serverName(Buffer.from("a"), 1) }),
    expected: "other",
  },
  {
    name: "an extension that ends too late",
    input: helloFrom({ extensions: Buffer.from([0, 0, 0, 9, 1]) }),
    expected: "other",
  },
  {
    name: "bytes behind the extensions",
    input: helloFrom({ extensions: versions(0x0304), behind: Buffer.from([0]) }),
    expected: "other",
  },
  { name: "an odd list of suites", input: helloFrom({ suites: Buffer.from([0x13]) }), expected: "other" },
  { name: "no suites", input: helloFrom({ suites: Buffer.alloc(0) }), expected: "other" },
  { name: "no compression at all", input: helloFrom({ compressions: Buffer.alloc(0) }), expected: "other" },
  { name: "compression only", input: helloFrom({ compressions: Buffer.from([1]) }), expected: "hello" },
  { name: "a session id of 33 bytes", input: helloFrom({ sessionBytes: 33 }), expected: "other" },
  { name: "SSL 3.0", input: helloFrom({ version: 0x0300 }), expected: "hello" },
  { name: "no version that exists", input: helloFrom({ extensions: versions(0x0a0a, 0x7f1c) }), expected: "hello" },
  {
    name: "a version of the future beside one of now",
    input: helloFrom({ extensions: versions(0x0a0a, 0x0303) }),
    expected: "hello",
  },
  {
    name: "an empty fragment",
    input: Buffer.concat([Buffer.from([22, 3, 1, 0, 0]), helloFrom({})]),
    expected: "other",
  },
  { name: "an alert", input: Buffer.from([21, 3, 1, 0, 2, 1, 0]), expected: "other" },
  { name: "another handshake message", input: Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0]), expected: "other" },
  { name: "a record of another age", input: Buffer.from([22, 2]), expected: "other" },
  { name: "a record longer than any", input: Buffer.from([22, 3, 1, 0x40, 1]), expected: "other" },
  { name: "a message longer than any", input: Buffer.from([22, 3, 1, 0, 4, 1, 1, 0, 0]), expected: "other" },
  { name: "SSL 2.0", input: Buffer.from([0x80, 0x2e, 1, 3, 1]), expected: "other" },
  { name: "HTTP", input: Buffer.from("GET / HTTP/1.1\r\n"), expected: "other" },
  { name: "one byte of HTTP", input: Buffer.from("G"), expected: "other" },
  { name: "nothing", input: Buffer.alloc(0), expected: "incomplete" },
];

for (const { name, input, expected } of made) {
  test(`a hello made by hand: ${name}`, () => assert.equal(new ClientHelloReader().read(input).type, expected));
}

test("whatever bytes come, the outcome is one of three and no name holds more than was sent", () => {
  const bytes = fc.uint8Array({ maxLength: 600 }).map((array) => Buffer.from(array));
  const withHeader = bytes.map((body) => {
    const message = Buffer.concat([Buffer.from([1, 0, body.length >> 8, body.length & 0xff]), body]);
    return Buffer.concat([Buffer.from([22, 3, 1, message.length >> 8, message.length & 0xff]), message]);
  });
  fc.assert(
    fc.property(fc.oneof(bytes, withHeader), (input) => {
      const outcome = new ClientHelloReader().read(input);
      if (outcome.type === "hello") assert.ok(outcome.serverName.length <= input.length);
    }),
    { numRuns: 3000, seed: 5 },
  );
});

test("a hello with a byte changed is read as OpenSSL reads it, or left to OpenSSL as no hello", async () => {
  const hello = await helloOf({ servername: "shop.example", ALPNProtocols: ["istio", "h2"] });
  const { certificate, key } = await serverCertificate();
  const secureContext = tls.createSecureContext({ cert: certificate, key });
  let compared = 0;
  await fc.assert(
    fc.asyncProperty(fc.nat(hello.length - 1), fc.nat(255), async (position, value) => {
      const changed = Buffer.from(hello);
      changed[position] = value;
      const outcome = new ClientHelloReader().read(changed);
      if (outcome.type !== "hello") return;
      const seen = await nameSeenByOpenSsl(secureContext, changed);
      if (seen === undefined) return;
      compared += 1;
      assert.equal(outcome.serverName, seen);
    }),
    { numRuns: 400, seed: 7 },
  );
  assert.ok(compared > 100, `${compared} of them were hellos for OpenSSL`);
});

async function serverCertificate(): Promise<{ readonly certificate: string; readonly key: string }> {
  const { testCertificate } = await import("../../../../../../tests/tools/certificates.ts");
  return testCertificate({ subject: "/CN=server" });
}

/** The name that OpenSSL's server finds in a hello; undefined where it refuses it before it asks for one. */
function nameSeenByOpenSsl(secureContext: tls.SecureContext, hello: Buffer): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const server = net.createServer((socket) => {
    const secure = new tls.TLSSocket(socket, {
      isServer: true,
      secureContext,
      SNICallback: (name, done) => {
        resolve(name);
        done(null, secureContext);
      },
    });
    secure.on("error", () => undefined);
    secure.on("close", () => {
      resolve(undefined);
      server.close();
    });
  });
  server.listen(0, "127.0.0.1", () => {
    const client = net.connect((server.address() as net.AddressInfo).port, "127.0.0.1");
    client.on("error", () => undefined);
    client.on("data", () => client.destroy());
    client.end(hello);
  });
  return promise;
}
