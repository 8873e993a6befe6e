// The owner of an account, with a browser that goes everywhere: to the application under test and to the authorization
// server.
import { request } from "node:http";
import type { IncomingMessage } from "node:http";
import type { Send, Visit } from "../../packages/authorization-server/src/testing/browser.ts";
import { Browser } from "../../packages/authorization-server/src/testing/browser.ts";
import { testPassword } from "../../packages/authorization-server/src/testing/test-server.ts";

/** Not by `fetch`, which says of itself that it is a script: mod_auth_openidc sends none of those to sign in. */
const navigate: Send = async ({ method, url, headers, body }) => {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const all = { accept: "text/html", ...headers };
  request(url, { method, headers: all }, resolve).once("error", reject).end(body);
  const answer = await promise;
  const text = Buffer.concat(await answer.toArray()).toString();
  return { status: answer.statusCode!, headers: answer.headers, body: text };
};

export function everywhere(): Browser {
  return new Browser(navigate, "http://");
}

/** Signs in and consents where a page asks for it; what the browser ends at. */
export async function signInAt(browser: Browser, page: Visit): Promise<Visit> {
  let visit = page;
  if (visit.body.includes('name="username"')) visit = await browser.signIn(visit, "ann", testPassword);
  if (visit.body.includes('name="decision"')) visit = await browser.decide(visit, "allow");
  return visit;
}
