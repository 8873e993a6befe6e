// The catalog by gRPC, and the web front end that reads it so, without a mesh.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { Client, credentials, Metadata, status, type StatusObject } from "@grpc/grpc-js";
import { createAppServer } from "../serve.ts";
import { catalogByGrpc } from "../webapp/catalog-by-grpc.ts";
import { createWebapp } from "../webapp/webapp.ts";
import { catalogService, healthService, reflectionService } from "./protocol.ts";
import { type GrpcServer, serveGrpc } from "./serve-grpc.ts";
import { Stock } from "./stock.ts";

interface Running {
  readonly stock: Stock;
  readonly server: GrpcServer;
  readonly address: string;
  readonly client: Client;
}

async function start(t: TestContext, showImage = false): Promise<Running> {
  const stock = new Stock({ showImage, imageBaseUrl: "http://pictures" });
  const server = await serveGrpc(stock, "127.0.0.1:0");
  const address = `127.0.0.1:${server.port}`;
  const client = new Client(address, credentials.createInsecure());
  t.after(() => {
    client.close();
    server.end();
  });
  return { stock, server, address, client };
}

/** Sends all requests and ends; the answers, and the status of the end. */
async function chat(
  client: Client,
  { path, requestSerialize, responseDeserialize }: (typeof catalogService)[string],
  requests: readonly object[],
  end = true,
): Promise<{ readonly answers: unknown[]; readonly code: string }> {
  const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, new Metadata());
  const answers: unknown[] = [];
  call.on("data", (answer: unknown) => answers.push(answer));
  call.on("error", () => undefined);
  const { promise, resolve } = Promise.withResolvers<StatusObject>();
  call.on("status", resolve);
  for (const request of requests) call.write(request);
  if (end) call.end();
  const { code } = await promise;
  return { answers, code: status[code] };
}

test("items are those of the HTTP port, with pictures in v2 alone", async (t) => {
  for (const showImage of [false, true]) {
    const { address, stock } = await start(t, showImage);
    const catalog = catalogByGrpc(address, undefined);
    t.after(() => catalog.close());
    assert.deepEqual(await catalog.read(undefined, {}, 5000), { status: 200, body: stock.items });
    assert.deepEqual(await catalog.read("2", {}, 5000), { status: 200, body: stock.item("2") });
    assert.equal(stock.item("2")!.imageUrl !== undefined, showImage);
  }
});

test("a stream answers in order, and ends at a refusal", async (t) => {
  const { client, stock } = await start(t);
  const { GetItems } = catalogService;
  const ids = Array.from({ length: 300 }, (_, index) => (index % 6) + 1);
  const all = await chat(
    client,
    GetItems!,
    ids.map((id) => ({ id })),
  );
  assert.equal(all.code, "OK");
  assert.deepEqual(
    all.answers,
    ids.map((id) => stock.item(String(id))),
  );
  const refused = await chat(client, GetItems!, [{ id: 1 }, { id: 77 }, { id: 2 }]);
  assert.deepEqual([refused.code, refused.answers], ["NOT_FOUND", [stock.item("1")]]);
});

test("the fault switch acts on every method", async (t) => {
  const { address, client, stock } = await start(t);
  stock.faultPercentage = 100;
  const catalog = catalogByGrpc(address, undefined);
  t.after(() => catalog.close());
  for (const id of [undefined, "1"]) {
    assert.deepEqual(await catalog.read(id, {}, 5000), { status: 500, body: { error: "blowup" } });
  }
  assert.equal((await chat(client, catalogService["GetItems"]!, [{ id: 1 }])).code, "INTERNAL");
});

test("a catalog that ends gives its streams back, and takes no call more", async (t) => {
  const { client, server } = await start(t);
  const ended = chat(client, catalogService["GetItems"]!, [{ id: 1 }], false);
  // Health is asked on the same connection: the stream has arrived before it.
  await chat(client, reflectionService["ServerReflectionInfo"]!, [{ listServices: "" }]);
  server.end();
  assert.equal((await ended).code, "UNAVAILABLE");
});

test("health and reflection answer what clients of gRPC ask", async (t) => {
  const { client } = await start(t);
  const check = (service: string): Promise<unknown> => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const { path, requestSerialize, responseDeserialize } = healthService["Check"]!;
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, { service }, (error, answer) =>
      resolve(error === null ? answer : status[error.code]),
    );
    return promise;
  };
  assert.deepEqual(await check(""), { status: "SERVING" });
  assert.deepEqual(await check("shop.Catalog"), { status: "SERVING" });
  assert.deepEqual(await check("other"), "NOT_FOUND");
  const { answers } = await chat(client, reflectionService["ServerReflectionInfo"]!, [
    { listServices: "" },
    { fileContainingSymbol: "shop.Catalog" },
    { allExtensionNumbersOfType: "shop.Item" },
  ]);
  const [listed, files, extensions] = answers as Record<string, Record<string, unknown>>[];
  const names = (listed!["listServicesResponse"]!["service"] as { name: string }[]).map(({ name }) => name);
  assert.ok(names.includes("shop.Catalog"));
  assert.equal((files!["fileDescriptorResponse"]!["fileDescriptorProto"] as unknown[]).length, 3);
  assert.equal(extensions!["errorResponse"]!["errorCode"], status.UNIMPLEMENTED);
});

test("the web front end answers the same by either protocol", async (t) => {
  const { address, stock } = await start(t);
  const catalog = catalogByGrpc(address, undefined);
  const server = createAppServer(createWebapp({ catalogUrl: "http://nobody.invalid", byGrpc: catalog }));
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => {
    catalog.close();
    server.closeAllConnections();
    server.close();
  });
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/catalog`;
  const get = async (target: string): Promise<unknown> => {
    const answer = await fetch(base + target);
    return [answer.status, await answer.json()];
  };
  assert.deepEqual(await get(""), [200, stock.items]);
  assert.deepEqual(await get("/items/3"), [200, stock.item("3")]);
  assert.deepEqual(await get("/items/x"), [404, { error: "no item has the id 0" }]);
  stock.faultPercentage = 100;
  assert.deepEqual(await get(""), [500, { error: "blowup" }]);
});
