// `--demo`: a client and a user to try the server with. Their secrets are random, shown on the terminal or kept in a
// file that only its owner can read, and written to no log.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { newSecret } from "../crypto/secrets.ts";
import type { ServerContext } from "../server-context.ts";
import { findAnyClient } from "../store/clients.ts";
import { findUserByName } from "../store/users.ts";
import { createClient, replaceClientSecret } from "./clients.ts";
import { changeUserPassword, createUser } from "./users.ts";

export interface Demo {
  readonly file: string;
  readonly user: string;
  readonly password: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUri: string;
}

/** Makes both once; a later start with the same data directory finds their secrets in the file. */
export async function makeDemo(server: ServerContext): Promise<Demo> {
  const { config, database, passwords } = server;
  const file = path.join(config.dataDir, "demo.json");
  const saved = readSaved(file);
  const demo: Demo = {
    file,
    user: "demo",
    password: saved?.password ?? newSecret().slice(0, 16),
    clientId: "demo-client",
    clientSecret: saved?.clientSecret ?? newSecret(),
    redirectUri: config.demoRedirectUri,
  };
  const exists = await database.read(async (reader) => ({
    client: (await findAnyClient(reader, demo.clientId)) !== undefined,
    user: (await findUserByName(reader, demo.user)) !== undefined,
  }));
  const rules = { issuerIsHttp: config.issuer.startsWith("http:") };
  const problems: string[] = [];
  if (!exists.client) {
    const logoutUri = config.demoPostLogoutRedirectUri;
    const client = {
      id: demo.clientId,
      name: "Demo application",
      redirectUris: [demo.redirectUri],
      postLogoutRedirectUris: logoutUri === undefined ? [] : [logoutUri],
      scope: ["openid", "profile", "email", "offline_access", ...config.scopeTexts.keys()].join(" "),
      secret: demo.clientSecret,
    };
    problems.push(...((await createClient(database, rules, client)).problems ?? []));
  } else if (saved === undefined) {
    problems.push(...((await replaceClientSecret(database, demo.clientId, demo.clientSecret)).problems ?? []));
  }
  if (!exists.user) {
    const user = { name: demo.user, password: demo.password, displayName: "Demo User", email: "demo@example.com" };
    problems.push(...((await createUser(database, passwords, user)).problems ?? []));
  } else if (saved === undefined) {
    problems.push(...((await changeUserPassword(database, passwords, demo.user, demo.password)).problems ?? []));
  }
  if (problems.length > 0) throw new Error(`demo: ${problems.join("; ")}`);
  if (saved !== undefined) return demo;
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
  writeFileSync(file, `${JSON.stringify(demo, undefined, 2)}\n`, { mode: 0o600 });
  return demo;
}

function readSaved(file: string): Demo | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Demo;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Standard output that is no terminal may well be a log file, which gets the place of the secrets instead. */
export function demoLines(demo: Demo, terminal: boolean): readonly string[] {
  if (!terminal) return [`  demo        user ${demo.user}, client ${demo.clientId}; their secrets: ${demo.file}`];
  return [
    `  demo user   ${demo.user} / ${demo.password}`,
    `  demo client ${demo.clientId} / ${demo.clientSecret}`,
    `              redirect URI ${demo.redirectUri}`,
  ];
}
