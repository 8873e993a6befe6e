// The work that is measured: with session and grant present, authorize → code → token. One sign-in prepares it.
import { Browser } from "../../packages/authorization-server/src/testing/browser.ts";
import type { Contestant, RunningContestant } from "./contestants.ts";
import { clientSecret, password, redirectUri } from "./contestants.ts";
import type { HttpClient } from "./http-client.ts";

export interface PreparedFlow {
  /** One flow, from the authorization request to the token; answers the access token. */
  readonly run: () => Promise<string>;
}

const form = { "content-type": "application/x-www-form-urlencoded" };
export const basicAuthorization = `Basic ${Buffer.from(`app:${clientSecret}`).toString("base64")}`;

export async function prepareFlow(
  contestant: Contestant,
  running: RunningContestant,
  client: HttpClient,
): Promise<PreparedFlow> {
  const { issuer } = running;
  const query = new URLSearchParams({
    client_id: "app",
    response_type: "code",
    redirect_uri: redirectUri,
    scope: "api",
    state: "abcdefgh",
  });
  const target = `${contestant.authorizePath}?${query.toString()}`;
  const browser = new Browser(async (request) => {
    const answer = await client.send(request.method, request.url.slice(issuer.length), request.headers, request.body);
    const { location } = answer.headers;
    const absolute = location?.startsWith("/") === true ? issuer + location : location;
    return { ...answer, headers: { ...answer.headers, location: absolute } };
  }, issuer);
  let page = await browser.open(issuer + target);
  for (let step = 0; step < 4 && page.location === undefined; step += 1) {
    const fields = page.body.includes('name="decision"')
      ? { decision: "allow" }
      : { username: "ann", login: "ann", password };
    page = await browser.submit(page, /./, fields);
  }
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  const headers = { ...form, authorization: basicAuthorization };
  return {
    run: async () => {
      const authorized = await client.send("GET", target, { cookie });
      const code = /[?&]code=([^&]+)/.exec(authorized.headers.location ?? "")?.[1];
      if (code === undefined)
        throw new Error(`no code: ${authorized.status} ${authorized.headers.location} ${authorized.body}`);
      const body = `grant_type=authorization_code&code=${code}&redirect_uri=${encodeURIComponent(redirectUri)}`;
      const answer = await client.send("POST", "/token", headers, body);
      const token = (JSON.parse(answer.body) as { access_token?: string }).access_token;
      if (token?.split(".").length !== 3) throw new Error(`no JWT: ${answer.status} ${answer.body}`);
      return token;
    },
  };
}
