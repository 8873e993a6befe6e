// The webhooks' port for whoever reaches it: what is no review is refused with a reason, and nobody keeps others out.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type TLSSocket } from "node:tls";
import { type TestContext, test } from "node:test";
import { Agent, request } from "undici";
import { createDevelopmentAuthority, issueDevelopmentCertificate } from "@tulle/identity";
import { Logging } from "@tulle/telemetry";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { serveWebhooks, webhookLimits } from "./webhook-server.ts";

async function serve(
  t: TestContext,
  limits: Partial<{ [K in keyof typeof webhookLimits]: number }> = {},
  isReady = (): boolean => true,
) {
  const authority = await createDevelopmentAuthority("a test", Date.now());
  const released = Promise.withResolvers<void>();
  const { keyPem, chainPem } = await issueDevelopmentCertificate(authority, Date.now());
  const server = await serveWebhooks(
    {
      address: { host: "127.0.0.1", port: 0 },
      credentials: () => ({ privateKeyPem: keyPem, certChainPem: chainPem }),
      handlers: {
        "/inject": ({ name }) => ({ patch: [{ op: "add", path: "/a", value: 1 }], warnings: [`of ${name}`] }),
        "/refuse": () => ({ refusal: "not like this" }),
        "/fail": () => {
          throw new Error("broken");
        },
        "/wait": async () => {
          await released.promise;
          return {};
        },
      },
      isReady,
      log: new Logging({ level: "off" }).logger("webhook"),
    },
    { ...webhookLimits, ...limits },
  );
  t.after(() => server.close());
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
  t.after(() => dispatcher.destroy());
  const url = `https://127.0.0.1:${server.port}`;
  const ask = async (path: string, body: string, headers: Readonly<Record<string, string>> = {}) => {
    const answer = await request(`${url}${path}`, {
      method: "POST",
      dispatcher,
      body,
      headers: { "content-type": "application/json", ...headers },
    });
    return { status: answer.statusCode, text: await answer.body.text() };
  };
  const isServedReady = async (): Promise<number> => {
    const answer = await request(`${url}/ready`, { dispatcher });
    await answer.body.dump();
    return answer.statusCode;
  };
  return { server, ask, isServedReady, release: released.resolve };
}

const review = (asked: object): string =>
  JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request: asked });
const good = { uid: "u1", operation: "CREATE", namespace: "shop", name: "web", object: { kind: "Pod" } };

test("it is ready once API servers know its root, whatever comes later", async (t) => {
  let isReady = false;
  const { isServedReady } = await serve(t, {}, () => isReady);
  assert.equal(await isServedReady(), 503);
  isReady = true;
  assert.equal(await isServedReady(), 200);
  isReady = false;
  assert.equal(await isServedReady(), 200);
});

test("a review is answered with its patch, its warnings and its id, or with why not", async (t) => {
  const { ask } = await serve(t);
  const { status, text } = await ask("/inject?timeout=10s", review(good));
  assert.equal(status, 200);
  const { response } = JSON.parse(text) as { response: Record<string, unknown> };
  const patch = Buffer.from('[{"op":"add","path":"/a","value":1}]').toString("base64");
  assert.deepEqual(response, { uid: "u1", allowed: true, patchType: "JSONPatch", patch, warnings: ["of web"] });
  const refused = JSON.parse((await ask("/refuse", review(good))).text) as { response: Record<string, unknown> };
  assert.deepEqual(refused.response, {
    uid: "u1",
    allowed: false,
    status: { code: 400, reason: "BadRequest", message: "not like this" },
  });
});

const malformed: readonly { readonly name: string; readonly body: string; readonly says: RegExp }[] = [
  { name: "nothing", body: "", says: /no JSON/ },
  { name: "a list", body: "[]", says: /no object/ },
  {
    name: "another kind",
    body: '{"apiVersion":"v1","kind":"Pod"}',
    says: /no AdmissionReview of admission.k8s.io\/v1/,
  },
  {
    name: "an old version",
    body: review(good).replace("k8s.io/v1", "k8s.io/v1beta1"),
    says: /no AdmissionReview of admission.k8s.io\/v1/,
  },
  { name: "no request", body: '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}', says: /request is/ },
  { name: "no id", body: review({ ...good, uid: undefined }), says: /uid/ },
  { name: "no object", body: review({ ...good, object: null }), says: /request.object is no object/ },
  {
    name: "a namespace that selects others",
    body: review({ ...good, namespace: "shop,metadata.name!=shop" }),
    says: /namespace is no name/,
  },
  { name: "a namespace that is none", body: review({ ...good, namespace: {} }), says: /namespace/ },
];

for (const { name, body, says } of malformed) {
  test(`${name} is refused with a reason`, async (t) => {
    const { ask } = await serve(t);
    const { status, text } = await ask("/inject", body);
    assert.equal(status, 400);
    assert.match(text, says);
  });
}

test("other ways of asking, and what fails here, have their status", async (t) => {
  const { ask } = await serve(t);
  assert.equal((await ask("/other", review(good))).status, 404);
  assert.equal((await ask("/constructor", review(good))).status, 404);
  assert.equal((await ask("/inject", review(good), { "content-type": "text/plain" })).status, 415);
  const failed = await ask("/fail", review(good));
  assert.deepEqual([failed.status, /broken/.test(failed.text)], [500, false]);
});

test("a body of 50 MB is refused, announced or not, and what all bodies take together is bounded", async (t) => {
  const { ask } = await serve(t);
  assert.equal((await ask("/inject", "x".repeat(50_000_000)).catch(() => ({ status: 413 }))).status, 413);
  assert.equal((await ask("/inject", review(good))).status, 200);
  const small = await serve(t, { allBodiesBytes: 1000 });
  assert.equal((await small.ask("/inject", " ".repeat(2000))).status, 503);
  assert.equal((await small.ask("/inject", review(good))).status, 200);
});

test("a path that is no path is refused, and the program goes on", async (t) => {
  const { server, ask } = await serve(t);
  for (const target of ["//", "http://[", "//["]) {
    const socket = await idle(t, server.port, `POST ${target} HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n`);
    const [head] = (await once(socket, "data")) as [Buffer];
    assert.match(head.toString(), /^HTTP\/1\.1 40[04] /, target);
  }
  assert.equal((await ask("/inject", review(good))).status, 200);
});

test("a body counts until it is answered", async (t) => {
  const { ask, release } = await serve(t, { allBodiesBytes: 1000 });
  const waiting = ask("/wait", review({ ...good, name: "x".repeat(600) }));
  await waitFor(async () => (await ask("/inject", review({ ...good, name: "x".repeat(300) }))).status === 503, {
    what: "the one that waits to count",
  });
  release();
  assert.equal((await waiting).status, 200);
  assert.equal((await ask("/inject", review({ ...good, name: "x".repeat(300) }))).status, 200);
});

async function idle(t: TestContext, port: number, begin = ""): Promise<TLSSocket> {
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false });
  socket.on("error", () => undefined);
  t.after(() => socket.destroy());
  await once(socket, "secureConnect");
  socket.write(begin);
  return socket;
}

test("who begins a request and does not end it is cut off, and who only holds connections keeps nobody out", async (t) => {
  const { server, ask } = await serve(t, {
    requestTimeoutMs: 300,
    checkIntervalMs: 50,
    connections: 3,
  });
  const slow = await idle(t, server.port, "POST /inject HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{");
  await once(slow.resume(), "close");
  const held: TLSSocket[] = [];
  for (let count = 0; count < 5; count += 1) held.push(await idle(t, server.port));
  assert.equal((await ask("/inject", review(good))).status, 200);
  await waitFor(() => held.filter(({ destroyed }) => destroyed).length >= 3, { what: "the oldest to make way" });
  assert.equal((await ask("/inject", review(good))).status, 200);
});
