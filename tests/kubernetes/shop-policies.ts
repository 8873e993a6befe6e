// The shop's policies on a cluster: mutual TLS as a must, tokens of its authorization server, and people who sign in,
// at the client application and at the gateway. Its addresses are those of localhost:8080, as behind `kubectl
// port-forward`; the gateway's node port stands for that.
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { Browser, type Send } from "../../packages/authorization-server/src/testing/browser.ts";
import { httpRequest } from "../e2e/http-request.ts";
import { kubectl } from "../tools/cluster/kubectl.ts";
import { waitFor } from "../tools/processes.ts";
import { type ClusterShop, shopFolder } from "./cluster-shop.ts";

const base = "http://localhost:8080";

export function policyTests(shopOf: () => ClusterShop): void {
  const send: Send = async ({ url, method, headers, body }) => {
    const shop = shopOf();
    const { pathname, search } = new URL(url, base);
    const answer = await httpRequest(`http://${shop.hosts[0]}:${shop.port}${pathname}${search}`, {
      method,
      headers: { ...headers, host: new URL(base).host },
      ...(body === undefined ? {} : { body }),
    });
    const { location } = answer.headers;
    if (typeof location !== "string") return answer;
    return { ...answer, headers: { ...answer.headers, location: new URL(location, new URL(url, base)).href } };
  };
  const ask = (url: string, headers: Readonly<Record<string, string>> = {}) =>
    send({ method: "GET", url: `${base}${url}`, headers, body: undefined });

  test("policy 1: pods answer the mesh alone", async () => {
    const { status } = await shopOf().pod("catalog-v1");
    const host = status.podIP.includes(":") ? `[${status.podIP}]` : status.podIP;
    const plainly = (): Promise<number> => httpRequest(`http://${host}:3000/items`).then((answer) => answer.status);
    assert.equal(await plainly(), 200);
    await applyPolicy("1-strict-mutual-tls");
    const isRefused = (): Promise<boolean> =>
      plainly().then(
        () => false,
        () => true,
      );
    await waitFor(isRefused, { what: "plain text to be refused" });
    assert.equal((await ask("/api/catalog")).status, 200);
  });

  test("policy 2: the web front end alone reads the catalog", async () => {
    await applyPolicy("2-only-the-web-front-end-reads");
    // As a program in another pod, by its proxy.
    const program = `fetch("http://catalog/items").then((answer) => process.stdout.write(String(answer.status)))`;
    const args = ["exec", "-n", "shop", "deploy/orders", "-c", "orders", "--", "/usr/local/bin/node", "-e", program];
    await waitFor(async () => (await kubectl(args)) === "403", { what: "the orders to be refused" });
    assert.equal((await ask("/api/catalog")).status, 200);
    await removePolicy("2-only-the-web-front-end-reads");
  });

  test("tokens of the authorization server are good, and nobody else's", async () => {
    const garbage = await ask("/api/orders", { authorization: "Bearer e30.e30.e30" });
    assert.equal(garbage.status, 401);
    assert.match(String(garbage.headers["www-authenticate"]), /error="invalid_token"/);
    const person = new Browser(send, base);
    const login = await person.open(`${base}/client/login`);
    const consent = await person.signIn(login, "demo", shopOf().demoPassword);
    // The orders come by the access token, which the proxy beside them checks.
    const page = await person.decide(consent, "allow");
    assert.match(page.body, /Signed in as <b>Demo User<\/b>/, page.body);
    assert.match(page.body, /€ 282\.00/);
    const again = await person.submit(page, /\/refresh$/, {});
    assert.match(again.body, /refreshed 1 times/);
  });

  test("policy 4: the gateway asks people to sign in, and nobody passes without", async () => {
    await applyPolicy("4-sign-in-for-account");
    await waitFor(async () => (await ask("/account")).status === 302, { what: "the way to the sign-in page" });
    const person = new Browser(send, base);
    const login = await person.open(`${base}/account`);
    const consent = await person.signIn(login, "demo", shopOf().demoPassword);
    const page = await person.decide(consent, "allow");
    assert.equal(page.status, 200, page.body);
    assert.match(page.body, /Signed in as .*Demo User/);
    // Past the gateway's own question: the workload's proxy has one, too.
    const program = `fetch("http://orders/account").then((answer) => process.stdout.write(String(answer.status)))`;
    const args = ["exec", "-n", "shop", "deploy/webapp", "-c", "webapp", "--", "/usr/local/bin/node", "-e", program];
    await waitFor(async () => (await kubectl(args)) === "403", { what: "the front end to be refused" });
    await kubectl(["delete", "authorizationpolicy", "account-needs-sign-in", "-n", "shop"]);
    await removePolicy("1-strict-mutual-tls");
  });
}

const fileOf = (name: string): string => path.join(shopFolder, "policies", `${name}.yaml`);
const applyPolicy = (name: string): Promise<string> => kubectl(["apply", "-f", fileOf(name)]);
const removePolicy = (name: string): Promise<string> => kubectl(["delete", "-f", fileOf(name)]);
