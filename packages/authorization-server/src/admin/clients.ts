// Administration of clients, on the store itself: also while the server runs, which reads a client anew for each
// request.
import { recordAdministration } from "../audit/audit-log.ts";
import { digest, newSecret } from "../crypto/secrets.ts";
import { signingAlgorithms } from "../keys/jwt.ts";
import { isClaimedHttps, redirectUriProblem } from "../protocol/redirect-uri.ts";
import { parseScope } from "../protocol/scope.ts";
import type { Client, GrantType } from "../store/clients.ts";
import { deleteClient, findAnyClient, grantTypes, listClients, saveClient } from "../store/clients.ts";
import type { Database, Reader } from "../store/database.ts";
import { subjectPrefix } from "../store/users.ts";
import { standardScopes } from "../token/user-claims.ts";
import { findClientLook, saveClientLook } from "../store/client-looks.ts";
import type { Look } from "../pages/look.ts";
import { readLogo } from "./logo.ts";
import type { AdminResult } from "./result.ts";

export const minSecretCharacters = 32;

/** What an administrator says of a client; what is left out keeps its value, or gets its default. */
export interface ClientSettings {
  readonly name?: string | undefined;
  readonly redirectUris?: readonly string[] | undefined;
  readonly postLogoutRedirectUris?: readonly string[] | undefined;
  readonly origins?: readonly string[] | undefined;
  readonly scope?: string | undefined;
  readonly defaultScope?: string | undefined;
  readonly requiredScope?: string | undefined;
  readonly grants?: readonly string[] | undefined;
  readonly audiences?: readonly string[] | undefined;
  readonly resourceServerFor?: readonly string[] | undefined;
  readonly formActionExtras?: readonly string[] | undefined;
  /** `#rrggbb`; empty takes it away. */
  readonly colour?: string | undefined;
  /** The bytes of a PNG or JPEG; false takes it away. */
  readonly logo?: Buffer | false | undefined;
  readonly requirePkce?: boolean | undefined;
  readonly opaque?: boolean | undefined;
  readonly idTokenAlgorithm?: string | undefined;
  readonly claimsInIdToken?: boolean | undefined;
  readonly trusted?: boolean | undefined;
  /** Empty takes it away. */
  readonly backchannelLogoutUri?: string | undefined;
  readonly refreshEndsWithSession?: boolean | undefined;
  readonly disabled?: boolean | undefined;
}

export interface NewClient extends ClientSettings {
  readonly id: string;
  readonly isPublic?: boolean | undefined;
  /** A secret to use instead of a random one; 32 characters at least, since only a digest without salt is kept. */
  readonly secret?: string | undefined;
}

export interface ClientRules {
  readonly issuerIsHttp: boolean;
}

export interface CreatedClient {
  readonly client: Client;
  /** Shown once, here. Undefined for public clients and for secrets that the administrator gave. */
  readonly secret: string | undefined;
}

export async function createClient(
  database: Database,
  rules: ClientRules,
  wanted: NewClient,
): Promise<AdminResult<CreatedClient>> {
  const problems = [...idProblems(wanted.id)];
  if (wanted.isPublic === true && wanted.secret !== undefined) problems.push("a public client has no secret");
  if (wanted.secret !== undefined) problems.push(...secretProblems(wanted.secret));
  const generated = wanted.isPublic === true || wanted.secret !== undefined ? undefined : newSecret();
  const secret = wanted.secret ?? generated;
  return database.transaction(async (transaction) => {
    if ((await findAnyClient(transaction, wanted.id)) !== undefined)
      problems.push(`the client ${wanted.id} exists already`);
    const blank: Client = {
      id: wanted.id,
      name: wanted.id,
      secretDigest: secret === undefined ? undefined : digest(secret),
      previousSecret: undefined,
      isPublic: wanted.isPublic ?? false,
      isTrusted: false,
      redirectUris: [],
      postLogoutRedirectUris: [],
      origins: [],
      scope: standardScopes,
      defaultScope: undefined,
      requiredScope: [],
      grantTypes: ["authorization_code", "refresh_token"],
      audiences: [],
      resourceServerFor: [],
      formActionExtras: [],
      requiresPkce: false,
      opaqueTokens: false,
      idTokenAlgorithm: undefined,
      claimsInIdToken: false,
      backchannelLogoutUri: undefined,
      refreshEndsWithSession: false,
      createdAtMs: transaction.nowMs,
      disabledAtMs: undefined,
    };
    const client = applySettings(blank, wanted, transaction.nowMs, problems);
    problems.push(...clientProblems(client, rules));
    const look = applyLook(undefined, wanted, problems);
    if (problems.length > 0) return { problems };
    await saveClient(transaction, client);
    if (look !== undefined) await saveClientLook(transaction, client.id, look);
    await recordAdministration(transaction, { event: "client created", clientId: client.id });
    return { value: { client, secret: generated } };
  });
}

export async function updateClient(
  database: Database,
  rules: ClientRules,
  id: string,
  settings: ClientSettings,
): Promise<AdminResult<Client>> {
  return database.transaction(async (transaction) => {
    const before = await findAnyClient(transaction, id);
    if (before === undefined) return { problems: [`there is no client ${id}`] };
    const problems: string[] = [];
    const client = applySettings(before, settings, transaction.nowMs, problems);
    problems.push(...clientProblems(client, rules));
    const look = applyLook(await findClientLook(transaction, id), settings, problems);
    if (problems.length > 0) return { problems };
    await saveClient(transaction, client);
    if (look !== undefined) await saveClientLook(transaction, id, look);
    await recordAdministration(transaction, { event: "client changed", clientId: id });
    return { value: client };
  });
}

/** How long two secrets may both pass: long enough for any roll-out, and no state for ever. */
const maxSecretOverlapMs = 90 * 86_400_000;

export interface NewSecret {
  /** Undefined = a random one. */
  readonly secret?: string | undefined;
  /** How long the one before passes too; undefined = it ends at once. */
  readonly overlapMs?: number | undefined;
}

/** Replaces the secret. Of two that pass already the older one ends at once. */
export async function replaceClientSecret(
  database: Database,
  id: string,
  { secret, overlapMs }: NewSecret = {},
): Promise<AdminResult<CreatedClient>> {
  const problems = secret === undefined ? [] : [...secretProblems(secret)];
  if (overlapMs !== undefined && (overlapMs < 1000 || overlapMs > maxSecretOverlapMs))
    problems.push(`the overlap is between 1s and ${maxSecretOverlapMs / 86_400_000}d`);
  const generated = secret === undefined ? newSecret() : undefined;
  return database.transaction(async (transaction) => {
    const before = await confidentialClient(transaction, id, problems);
    if (before === undefined || problems.length > 0) return { problems };
    const { secretDigest } = before;
    const previousSecret =
      overlapMs === undefined || secretDigest === undefined
        ? undefined
        : { digest: secretDigest, untilMs: transaction.nowMs + overlapMs };
    const client = { ...before, secretDigest: digest(secret ?? generated!), previousSecret };
    await saveClient(transaction, client);
    const event = previousSecret === undefined ? "client secret replaced" : "client secret added beside the one before";
    await recordAdministration(transaction, { event, clientId: id });
    return { value: { client, secret: generated } };
  });
}

/** Ends the secret before the present one, ahead of its time. */
export async function endPreviousSecret(database: Database, id: string): Promise<AdminResult<Client>> {
  const problems: string[] = [];
  return database.transaction(async (transaction) => {
    const before = await confidentialClient(transaction, id, problems);
    if (before !== undefined && before.previousSecret === undefined)
      problems.push(`the client ${id} has one secret alone`);
    if (before === undefined || problems.length > 0) return { problems };
    const client = { ...before, previousSecret: undefined };
    await saveClient(transaction, client);
    await recordAdministration(transaction, { event: "previous client secret ended", clientId: id });
    return { value: client };
  });
}

async function confidentialClient(reader: Reader, id: string, problems: string[]): Promise<Client | undefined> {
  const client = await findAnyClient(reader, id);
  if (client === undefined) problems.push(`there is no client ${id}`);
  else if (client.isPublic) problems.push(`${id} is a public client and has no secret`);
  return client;
}

export async function removeClient(database: Database, id: string): Promise<AdminResult<string>> {
  const removed = await database.transaction(async (transaction) => {
    if (!(await deleteClient(transaction, id))) return false;
    await recordAdministration(transaction, { event: "client deleted", clientId: id });
    return true;
  });
  return removed ? { value: id } : { problems: [`there is no client ${id}`] };
}

export async function allClients(database: Database): Promise<readonly Client[]> {
  return database.read((reader) => listClients(reader));
}

/** Undefined where the settings say nothing of it. */
function applyLook(before: Look | undefined, { colour, logo }: ClientSettings, problems: string[]): Look | undefined {
  if (colour === undefined && logo === undefined) return undefined;
  if (colour !== undefined && !/^(#[0-9a-f]{6})?$/i.test(colour))
    problems.push(`the colour ${colour} is not of the form #0f5e63`);
  const picture = logo === undefined || logo === false ? undefined : readLogo(logo);
  if (picture !== undefined && "problem" in picture) problems.push(picture.problem);
  return {
    colour: colour === undefined ? before?.colour : colour === "" ? undefined : colour.toLowerCase(),
    logo: logo === undefined ? before?.logo : picture !== undefined && "url" in picture ? picture.url : undefined,
  };
}

function applySettings(before: Client, settings: ClientSettings, nowMs: number, problems: string[]): Client {
  const scopeOf = (text: string, name: string): readonly string[] => {
    const scope = parseScope(text);
    if (scope === undefined) problems.push(`${name} holds a character that a scope cannot have`);
    return scope ?? [];
  };
  const grants = settings.grants?.flatMap((text) => text.split(/[ ,]+/)).filter((text) => text !== "");
  for (const grant of grants ?? []) {
    if (!(grantTypes as readonly string[]).includes(grant))
      problems.push(`no grant type "${grant}"; there are ${grantTypes.join(", ")}`);
  }
  const algorithm = signingAlgorithms.find((name) => name === settings.idTokenAlgorithm);
  if (settings.idTokenAlgorithm !== undefined && algorithm === undefined)
    problems.push(
      `no algorithm "${settings.idTokenAlgorithm}" for ID tokens; there are ${signingAlgorithms.join(", ")}`,
    );
  const disabledAtMs = settings.disabled === true ? (before.disabledAtMs ?? nowMs) : undefined;
  return {
    ...before,
    name: settings.name ?? before.name,
    redirectUris: settings.redirectUris ?? before.redirectUris,
    postLogoutRedirectUris: settings.postLogoutRedirectUris ?? before.postLogoutRedirectUris,
    origins: settings.origins ?? before.origins,
    scope: settings.scope === undefined ? before.scope : scopeOf(settings.scope, "scope"),
    defaultScope:
      settings.defaultScope === undefined ? before.defaultScope : scopeOf(settings.defaultScope, "default scope"),
    requiredScope:
      settings.requiredScope === undefined ? before.requiredScope : scopeOf(settings.requiredScope, "required scope"),
    grantTypes: (grants as readonly GrantType[] | undefined) ?? before.grantTypes,
    audiences: settings.audiences ?? before.audiences,
    resourceServerFor: settings.resourceServerFor ?? before.resourceServerFor,
    formActionExtras: settings.formActionExtras ?? before.formActionExtras,
    requiresPkce: settings.requirePkce ?? before.requiresPkce,
    opaqueTokens: settings.opaque ?? before.opaqueTokens,
    idTokenAlgorithm: algorithm ?? before.idTokenAlgorithm,
    claimsInIdToken: settings.claimsInIdToken ?? before.claimsInIdToken,
    isTrusted: settings.trusted ?? before.isTrusted,
    backchannelLogoutUri:
      settings.backchannelLogoutUri === "" ? undefined : (settings.backchannelLogoutUri ?? before.backchannelLogoutUri),
    refreshEndsWithSession: settings.refreshEndsWithSession ?? before.refreshEndsWithSession,
    disabledAtMs: settings.disabled === undefined ? before.disabledAtMs : disabledAtMs,
  };
}

function* idProblems(id: string): Iterable<string> {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(id))
    yield "a client id has 1 to 100 characters of A-Z a-z 0-9 . _ - and begins with a letter or digit";
  if (id.toLowerCase().startsWith(subjectPrefix))
    yield `a client id does not begin with ${subjectPrefix}, which marks users (RFC 9700 4.15)`;
}

function* secretProblems(secret: string): Iterable<string> {
  if (secret.length < minSecretCharacters) yield `the secret has fewer than ${minSecretCharacters} characters`;
  if (/\p{Cc}/u.test(secret)) yield "the secret holds a control character";
}

function* clientProblems(client: Client, rules: ClientRules): Iterable<string> {
  if (client.name.trim() === "" || client.name.length > 100 || /[\p{Cc}\p{Cf}]/u.test(client.name))
    yield "the name has 1 to 100 characters and no control characters";
  for (const uri of [...client.redirectUris, ...client.postLogoutRedirectUris]) {
    const problem = redirectUriProblem(uri, { ...rules, nativeClient: client.isPublic });
    if (problem !== undefined) yield `the redirect URI ${uri} ${problem}`;
  }
  if (client.grantTypes.includes("authorization_code") && client.redirectUris.length === 0)
    yield "the grant authorization_code needs a redirect URI (--redirect-uri), or leave it out with --grant";
  if (client.isPublic && client.grantTypes.includes("client_credentials"))
    yield "a public client cannot have the grant client_credentials";
  if (client.isPublic && client.resourceServerFor.length > 0) yield "a resource server is a confidential client";
  const logoutProblem = backchannelProblem(client);
  if (logoutProblem !== undefined) yield `the back-channel logout URI ${client.backchannelLogoutUri} ${logoutProblem}`;
  const outside = client.defaultScope?.filter((token) => !client.scope.includes(token)) ?? [];
  if (outside.length > 0) yield `the default scope is not part of the scope: ${outside.join(" ")}`;
  const unasked = client.requiredScope.filter((token) => !client.scope.includes(token));
  if (unasked.length > 0) yield `the required scope is not part of the scope: ${unasked.join(" ")}`;
  for (const origin of client.origins) {
    if (!URL.canParse(origin) || new URL(origin).origin !== origin)
      yield `${origin} is no origin such as https://app.example`;
  }
  if (
    client.isPublic &&
    client.isTrusted &&
    !client.redirectUris.every((uri) => URL.canParse(uri) && isClaimedHttps(uri))
  )
    yield "a trusted public client has https redirect URIs alone: at another one any program may answer in its name";
  if (client.origins.length > 0 && !client.isPublic) yield "origins are for public clients (browser applications)";
  for (const audience of [...client.audiences, ...client.resourceServerFor]) {
    if (!URL.canParse(audience) || audience.includes("#"))
      yield `the audience ${audience} is no absolute URI without fragment`;
  }
  for (const source of client.formActionExtras) {
    if (!/^(https?:\/\/[A-Za-z0-9.\-:[\]]+|[a-z][a-z0-9+.-]*:)$/.test(source))
      yield `the form action source ${source} is no origin and no scheme`;
  }
}

/** Back-Channel Logout §2.2: plain http is for confidential clients, such as those behind a sidecar that encrypts. */
function backchannelProblem({ backchannelLogoutUri: uri, isPublic }: Client): string | undefined {
  if (uri === undefined) return undefined;
  if (!URL.canParse(uri) || uri.length > 2000) return "is not an absolute URI of at most 2000 characters";
  const { protocol, username, password } = new URL(uri);
  if (protocol !== "https:" && protocol !== "http:") return "is neither https nor http";
  if (protocol === "http:" && isPublic) return "is http, which is for confidential clients alone";
  if (uri.includes("#")) return "has a fragment";
  if (username !== "" || password !== "") return "holds a user name or password";
  return undefined;
}
