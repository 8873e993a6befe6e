// What the client application's calls carry on of a visit, also those that its library makes.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { createAppServer, type Handler, sendText } from "../serve.ts";
import { createClientApplication } from "./client.ts";

async function listen(t: TestContext, handler: Handler): Promise<string> {
  const server = createAppServer(handler).listen(0, "127.0.0.1");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("tracing headers of a visit reach the authorization server, cookies do not", async (t) => {
  const seen: IncomingMessage["headers"][] = [];
  const issuer = await listen(t, (request, response) => {
    seen.push(request.headers);
    sendText(response, 404, "not here\n");
  });
  const base = await listen(
    t,
    createClientApplication({
      baseUrl: "http://localhost:8080/client",
      issuer,
      issuerOriginInside: issuer,
      ordersUrl: `${issuer}/orders`,
      credentials: () => ({ clientId: "c", clientSecret: "s" }),
    }),
  );
  const passed = { traceparent: "00-1-2-01", "x-request-id": "r", b3: "1-2-1", baggage: "a=b" };
  const answer = await fetch(`${base}/client/login`, { headers: { ...passed, cookie: "secret=1" } });
  assert.equal(answer.status, 502);
  assert.equal(seen.length, 1);
  for (const [name, value] of Object.entries(passed)) assert.equal(seen[0]![name], value);
  assert.equal(seen[0]!.cookie, undefined);
});
