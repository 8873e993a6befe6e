// The work that is measured: with session and grant present, authorize → code → token. One sign-in prepares it.
import type { Contestant, RunningContestant } from "./contestants.ts";
import { clientSecret, password, redirectUri } from "./contestants.ts";
import type { HttpAnswer, HttpClient } from "./http-client.ts";

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
  const cookie = await signIn(issuer, target, client);
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

/** Goes through the pages of either server once, as a browser does, and answers its cookies. */
async function signIn(issuer: string, target: string, client: HttpClient): Promise<string> {
  const cookies = new Map<string, string>();
  const send = async (method: string, at: string, body?: string): Promise<HttpAnswer> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await client.send(method, at, { ...(body === undefined ? {} : form), cookie }, body);
    for (const line of answer.headers["set-cookie"] ?? []) {
      const [name, value] = line.split(";")[0]!.split("=") as [string, string];
      cookies.set(name, value);
    }
    return answer;
  };
  let answer = await send("GET", target);
  for (let step = 0; step < 12; step += 1) {
    const location = answer.headers.location;
    if (location?.startsWith(redirectUri) === true) return [...cookies].map((pair) => pair.join("=")).join("; ");
    if (location !== undefined) {
      answer = await send("GET", location.replace(issuer, ""));
      continue;
    }
    const action = /<form[^>]*action="([^"]*)"/.exec(answer.body)?.[1] ?? "";
    const hidden = [...answer.body.matchAll(/type="hidden" name="([^"]*)"[^>]*?value="([^"]*)"/g)];
    const fields = new URLSearchParams(hidden.map((match) => [match[1]!, match[2]!.replaceAll("&amp;", "&")]));
    const own = answer.body.includes('name="decision"')
      ? { decision: "allow" }
      : { username: "ann", login: "ann", password };
    for (const [name, value] of Object.entries(own)) fields.set(name, value);
    for (const box of answer.body.matchAll(/type="checkbox" name="([^"]*)" value="([^"]*)"\s+checked/g))
      fields.append(box[1]!, box[2]!);
    answer = await send("POST", action.replace(issuer, ""), fields.toString());
  }
  throw new Error(`the sign-in did not come to its end: ${answer.status} ${answer.body}`);
}
