// `--demo`: a client and a user to try the server with. Their secrets are random unless they are given, shown on the
// terminal or kept in a file that only its owner can read, and written to no log.
import { readFileSync } from "node:fs";
import path from "node:path";
import { writeSecretFile } from "@tulle/identity/own";
import { describedScopes } from "../config/config.ts";
import type { Config } from "../config/config.ts";
import { newSecret } from "../crypto/secrets.ts";
import type { ServerContext } from "../server-context.ts";
import { type Client, findAnyClient } from "../store/clients.ts";
import { findUserByName } from "../store/users.ts";
import type { ClientSettings } from "./clients.ts";
import { createClient, replaceClientSecret, updateClient } from "./clients.ts";
import { changeUserPassword, createUser } from "./users.ts";

const gatewayClientId = "demo-gateway";

export interface Demo {
  readonly file: string;
  readonly user: string;
  readonly password: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUri: string;
}

/**
 * Makes both once; a later start with the same data directory finds their secrets in the file, and moves the client's
 * addresses to those it was given now.
 */
export async function makeDemo(server: ServerContext): Promise<Demo> {
  const { config, database, passwords } = server;
  const file = demoFile(config);
  const saved = readDemo(file);
  const demo: Demo = {
    file,
    user: "demo",
    password: config.demoPassword ?? saved?.password ?? newSecret().slice(0, 16),
    clientId: "demo-client",
    clientSecret: config.demoClientSecret ?? saved?.clientSecret ?? newSecret(),
    redirectUri: config.demoRedirectUri,
  };
  const exists = await database.read(async (reader) => ({
    client: await findAnyClient(reader, demo.clientId),
    gateway: await findAnyClient(reader, gatewayClientId),
    user: (await findUserByName(reader, demo.user)) !== undefined,
  }));
  const rules = { issuerIsHttp: config.issuer.startsWith("http:") };
  const problems: string[] = [];
  const logoutUri = config.demoPostLogoutRedirectUri;
  if (exists.client === undefined) {
    const client = {
      id: demo.clientId,
      name: "Demo application",
      redirectUris: [demo.redirectUri],
      postLogoutRedirectUris: logoutUri === undefined ? [] : [logoutUri],
      scope: ["openid", "profile", "email", "offline_access", ...describedScopes(config)].join(" "),
      secret: demo.clientSecret,
    };
    problems.push(...((await createClient(database, rules, client)).problems ?? []));
  } else {
    if (saved?.clientSecret !== demo.clientSecret)
      problems.push(
        ...((await replaceClientSecret(database, demo.clientId, { secret: demo.clientSecret })).problems ?? []),
      );
    const moved = movedUris(exists.client, saved?.redirectUri, demo.redirectUri, logoutUri);
    if (moved !== undefined)
      problems.push(...((await updateClient(database, rules, demo.clientId, moved)).problems ?? []));
  }
  problems.push(...(await makeGatewayClient(server, exists.gateway)));
  if (!exists.user) {
    const user = { name: demo.user, password: demo.password, displayName: "Demo User", email: "demo@example.com" };
    problems.push(...((await createUser(database, passwords, user)).problems ?? []));
  } else if (saved?.password !== demo.password) {
    problems.push(...((await changeUserPassword(database, passwords, demo.user, demo.password)).problems ?? []));
  }
  if (problems.length > 0) throw new Error(`demo: ${problems.join("; ")}`);
  const isSaved = ({ password, clientSecret, redirectUri }: Demo): boolean =>
    password === demo.password && clientSecret === demo.clientSecret && redirectUri === demo.redirectUri;
  if (saved !== undefined && isSaved(saved)) return demo;
  await writeSecretFile(file, `${JSON.stringify(demo, undefined, 2)}\n`);
  return demo;
}

/**
 * The client of a gateway that signs browsers in. Its addresses are always those of now, since nothing else is kept of
 * it.
 */
async function makeGatewayClient(server: ServerContext, existing: Client | undefined): Promise<readonly string[]> {
  const { config, database } = server;
  const { demoGatewayRedirectUris: redirectUris } = config;
  if (redirectUris.length === 0) return [];
  const rules = { issuerIsHttp: config.issuer.startsWith("http:") };
  const settings: ClientSettings = {
    name: "Demo gateway",
    redirectUris,
    postLogoutRedirectUris: config.demoGatewayPostLogoutRedirectUris,
    scope: ["openid", "profile", "email", "offline_access", ...describedScopes(config)].join(" "),
  };
  const made =
    existing === undefined
      ? await createClient(database, rules, { id: gatewayClientId, isPublic: true, ...settings })
      : await updateClient(database, rules, gatewayClientId, settings);
  return made.problems ?? [];
}

/** Another port or another `demo-redirect-uri` than at the start that made the client: what it says now holds. */
function movedUris(
  client: Client,
  before: string | undefined,
  redirectUri: string,
  logoutUri: string | undefined,
): ClientSettings | undefined {
  const redirectUris = new Set([redirectUri, ...client.redirectUris.filter((uri) => uri !== before)]);
  const postLogoutRedirectUris = new Set([
    ...client.postLogoutRedirectUris,
    ...(logoutUri === undefined ? [] : [logoutUri]),
  ]);
  if (
    client.redirectUris.includes(redirectUri) &&
    postLogoutRedirectUris.size === client.postLogoutRedirectUris.length
  ) {
    return undefined;
  }
  return { redirectUris: [...redirectUris], postLogoutRedirectUris: [...postLogoutRedirectUris] };
}

export function demoFile({ dataDir }: Pick<Config, "dataDir">): string {
  return path.join(dataDir, "demo.json");
}

/** Undefined before the first start with `--demo`. */
export function readDemo(file: string): Demo | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Demo;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Standard output that is no terminal may well be a log file, which gets the place of the secrets instead. */
export function demoLines(demo: Demo, issuer: string, terminal: boolean): readonly string[] {
  const begin = demo.redirectUri === `${issuer}/demo/callback` ? [`  try it      ${issuer}/demo`] : [];
  if (!terminal)
    return [...begin, `  demo        user ${demo.user}, client ${demo.clientId}; their secrets: ${demo.file}`];
  return [
    ...begin,
    `  demo user   ${demo.user} / ${demo.password}`,
    `  demo client ${demo.clientId} / ${demo.clientSecret}`,
    `              redirect URI ${demo.redirectUri}`,
  ];
}
