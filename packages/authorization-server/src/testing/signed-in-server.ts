// A server on which somebody is signed in and has said yes, for tests of what comes then.
import assert from "node:assert/strict";
import { basic, testRedirectUri, testRequest as request, testSecret } from "./test-server.ts";
import type { TestServer } from "./test-server.ts";
import type { Browser } from "./browser.ts";

/** A server with the client `app`, the user `ann` and a browser in which she is signed in and has consented. */
export async function ready(server: TestServer, scope = "profile"): Promise<Browser> {
  await server.client();
  await server.user();
  const browser = server.browser();
  await server.authorize(browser, { ...request, scope });
  return browser;
}

export async function newCode(
  server: TestServer,
  browser: Browser,
  more: Record<string, string> = {},
): Promise<string> {
  const answer = await server.authorize(browser, { ...request, ...more });
  return answer.get("code") ?? assert.fail(answer.toString());
}

export function redeem(code: string, more: Record<string, string> = {}): Record<string, string> {
  return { grant_type: "authorization_code", code, redirect_uri: testRedirectUri, ...more };
}

export const app = { authorization: basic("app", testSecret) };
