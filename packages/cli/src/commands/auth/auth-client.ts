// `tulle auth client`: the applications that may ask for tokens.
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import {
  allClients,
  createClient,
  endPreviousSecret,
  parseDurationMs,
  removeClient,
  replaceClientSecret,
  updateClient,
} from "@tulle/authorization-server";
import type { Client, ClientSettings } from "@tulle/authorization-server";
import { CommandFailure, exitCodes } from "../../command/command-failure.ts";
import type { CommandContext, OutputOption } from "../../command/command-module.ts";
import { addExamples, addOutputOption, optionName } from "../../command/command-options.ts";
import { formatFitting } from "../../printing/format-table.ts";
import type { StoreOptions } from "./auth-store.ts";
import { accepted, addStoreOptions, collect, moment, secretFromStdin, withStore } from "./auth-store.ts";

interface SettingOptions {
  readonly name?: string;
  readonly redirectUri?: readonly string[];
  readonly scope?: string;
  readonly defaultScope?: string;
  readonly requiredScope?: string;
  readonly grant?: readonly string[];
  readonly audience?: readonly string[];
  readonly resourceServer?: readonly string[];
  readonly origin?: readonly string[];
  readonly postLogoutRedirectUri?: readonly string[];
  readonly formAction?: readonly string[];
  readonly colour?: string | false;
  readonly logo?: string | false;
  readonly requirePkce?: boolean;
  readonly opaque?: boolean;
  readonly idTokenAlgorithm?: string;
  readonly claimsInIdToken?: boolean;
  readonly trusted?: boolean;
  readonly backchannelLogoutUri?: string;
  readonly refreshEndsWithSession?: boolean;
}

type Options = SettingOptions & StoreOptions & OutputOption;

function addSettings(command: Command): Command {
  return command
    .option("--name <text>", "what the consent page calls it (default: its id)")
    .option("--redirect-uri <uri>", "where answers may go, in full; may be repeated", collect)
    .option("--scope <scopes>", 'what it may ask for (default: "openid profile email offline_access")')
    .option("--default-scope <scopes>", "what is meant when it asks for no scope")
    .option("--required-scope <scopes>", "what the owner cannot leave out of what it asks for (openid never)")
    .option("--grant <type>", "authorization_code, refresh_token, client_credentials; may be repeated", collect)
    .option("--audience <uri>", "a resource it may get tokens for; the first is the default; may be repeated", collect)
    .option("--resource-server <uri>", "an audience whose tokens it may introspect; may be repeated", collect)
    .option("--origin <origin>", "a browser application's origin, for CORS; may be repeated", collect)
    .option("--post-logout-redirect-uri <uri>", "where a logout may lead; may be repeated", collect)
    .option("--form-action <source>", "an origin or scheme that its redirect URI redirects on to", collect)
    .option("--colour <colour>", "its colour on the pages that lead to it, such as #0f5e63")
    .option("--logo <file>", "its picture there: a PNG or JPEG of 32 KiB at most")
    .option("--trusted", "your own application: nobody is asked whether it may; sign-in stays")
    .option("--require-pkce", "refuse its requests without PKCE")
    .option("--opaque", "give it opaque access tokens instead of JWTs")
    .option("--id-token-algorithm <name>", "RS256 or ES256 (default: the server's, RS256)")
    .option("--claims-in-id-token", "put what userinfo would tell into its ID tokens too")
    .option("--backchannel-logout-uri <uri>", 'where it is told that a session has ended ("" for nowhere)')
    .option("--refresh-ends-with-session", "end its refresh tokens with the sign-in (default: they go on)");
}

function readLogoFile(file: string | false | undefined): Buffer | false | undefined {
  if (file === undefined || file === false) return file;
  try {
    return readFileSync(file);
  } catch (error) {
    throw new CommandFailure(`--logo: ${(error as Error).message}`);
  }
}

function settingsOf(options: SettingOptions): ClientSettings {
  return {
    name: options.name,
    redirectUris: options.redirectUri,
    postLogoutRedirectUris: options.postLogoutRedirectUri,
    origins: options.origin,
    scope: options.scope,
    defaultScope: options.defaultScope,
    requiredScope: options.requiredScope,
    grants: options.grant,
    audiences: options.audience,
    resourceServerFor: options.resourceServer,
    formActionExtras: options.formAction,
    colour: options.colour === false ? "" : options.colour,
    logo: readLogoFile(options.logo),
    requirePkce: options.requirePkce,
    opaque: options.opaque,
    idTokenAlgorithm: options.idTokenAlgorithm,
    claimsInIdToken: options.claimsInIdToken,
    trusted: options.trusted,
    backchannelLogoutUri: options.backchannelLogoutUri,
    refreshEndsWithSession: options.refreshEndsWithSession,
  };
}

/** Settings whose options are called otherwise. */
const otherOptions: Readonly<Record<string, string>> = {
  isPublic: "public",
  isTrusted: "trusted",
  redirectUris: "redirect-uri",
  postLogoutRedirectUris: "post-logout-redirect-uri",
  origins: "origin",
  grantTypes: "grant",
  audiences: "audience",
  resourceServerFor: "resource-server",
  formActionExtras: "form-action",
  requiresPkce: "require-pkce",
  opaqueTokens: "opaque",
};

/** What `create` and `update` call a setting, or would. */
function optionOf(setting: string): string {
  return otherOptions[setting] ?? optionName(setting);
}

/** A client as it is shown: never with anything of its secret. */
function shown(client: Client): Readonly<Record<string, unknown>> {
  const { secretDigest: _, previousSecret, createdAtMs, disabledAtMs, ...rest } = client;
  const previous = previousSecret === undefined ? {} : { previousSecretUntil: moment(previousSecret.untilMs) };
  return { ...rest, ...previous, createdAt: new Date(createdAtMs).toISOString(), disabled: disabledAtMs !== undefined };
}

export function registerClient(command: Command, context: CommandContext): void {
  addCreate(command, context);
  addChange(command, context);
  addSecret(command, context);
  addShow(command, context);
  const list = addOutputOption(addStoreOptions(command.command("list").description("list clients")));
  list.action(async (options: Options) => {
    const clients = await withStore(context, options, ({ database }) => allClients(database));
    await context.printData(clients.map(shown), options.output, () =>
      formatFitting(
        ["ID", "KIND", "GRANTS", "SCOPE", "REDIRECT URIS"],
        clients.map((client) => [
          client.id + (client.disabledAtMs === undefined ? "" : " (disabled)"),
          (client.isPublic ? "public" : "confidential") + (client.isTrusted ? ", trusted" : ""),
          client.grantTypes.join(","),
          client.scope.join(" "),
          client.redirectUris.join(" "),
        ]),
        { columns: context.columns, title: 0, empty: "no clients" },
      ),
    );
  });
  const remove = command.command("delete").argument("<id>").description("delete a client and all that it was given");
  addStoreOptions(remove).action(async (id: string, options: Options) => {
    accepted(await withStore(context, options, ({ database }) => removeClient(database, id)));
    context.stdout(`client ${id} deleted\n`);
  });
}

function addShow(command: Command, context: CommandContext): void {
  const show = command
    .command("show")
    .argument("<id>")
    .description("show a client, and until when its previous secret passes");
  addOutputOption(addStoreOptions(show)).action(async (id: string, options: Options) => {
    const clients = await withStore(context, options, ({ database }) => allClients(database));
    const client = clients.find((each) => each.id === id);
    if (client === undefined) throw new CommandFailure(`there is no client ${id}`);
    const settings = shown(client);
    await context.printData(settings, options.output, () => {
      const text = (value: unknown): string => (Array.isArray(value) ? value.join(" ") : String(value));
      const rows = Object.entries(settings).map(([name, value]) => [optionOf(name), text(value ?? "")] as const);
      return formatFitting(
        ["SETTING", "VALUE"],
        rows.filter(([, value]) => value !== ""),
        { columns: context.columns, title: 0 },
      );
    });
  });
}

function addCreate(command: Command, context: CommandContext): void {
  const create = command.command("create").description("register a client; its secret is shown once");
  create.requiredOption("--id <id>", "the client's id");
  addSettings(create)
    .option("--public", "a native or browser application, which can keep no secret")
    .option("--secret-stdin", "read the secret from standard input (32 characters at least) instead of making one");
  addOutputOption(addStoreOptions(create));
  addExamples(create, [
    ["tulle auth client create --id web --redirect-uri https://app.example/callback", "a web application"],
    ["tulle auth client create --id cli --public --redirect-uri http://127.0.0.1/cb", "a native application"],
    ["tulle auth client create --id job --grant client_credentials --scope read", "a job without a user"],
  ]);
  create.action(async (options: Options & { id: string; public?: boolean; secretStdin?: boolean }) => {
    const secret = options.secretStdin === true ? await secretFromStdin(context, "secret") : undefined;
    const wanted = { ...settingsOf(options), id: options.id, isPublic: options.public, secret };
    const created = accepted(
      await withStore(context, options, ({ database, rules }) => createClient(database, rules, wanted), true),
    );
    await printSecret(context, options, created);
  });
}

function previousText({ id, previousSecret }: Client): string {
  if (previousSecret === undefined) return "";
  const until = moment(previousSecret.untilMs);
  return `The secret before passes until ${until}; tulle auth client secret ${id} --end-previous ends it now.\n`;
}

async function printSecret(
  context: CommandContext,
  options: OutputOption,
  created: { readonly client: Client; readonly secret: string | undefined },
): Promise<void> {
  const data = { ...shown(created.client), ...(created.secret === undefined ? {} : { clientSecret: created.secret }) };
  await context.printData(data, options.output, () =>
    created.secret === undefined
      ? `client_id      ${created.client.id}\n${previousText(created.client)}`
      : `client_id      ${created.client.id}\nclient_secret  ${created.secret}\n(the secret is not kept: note it now)\n${previousText(created.client)}`,
  );
}

function addChange(command: Command, context: CommandContext): void {
  const change = command.command("update").argument("<id>").description("change a client; what is left out stays");
  addSettings(change)
    .option("--no-trusted", "ask owners about it again")
    .option("--no-require-pkce", "accept its requests without PKCE")
    .option("--no-colour", "show it in the server's own colour again")
    .option("--no-logo", "show no picture of it any more")
    .option("--no-opaque", "give it JWTs again")
    .option("--no-claims-in-id-token", "leave them to userinfo again")
    .option("--no-refresh-ends-with-session", "let its refresh tokens outlive the sign-in again")
    .option("--disable", "refuse the client until it is enabled again")
    .option("--enable", "accept it again");
  addOutputOption(addStoreOptions(change));
  change.action(async (id: string, options: Options & { disable?: boolean; enable?: boolean }) => {
    const disabled = options.disable === true ? true : options.enable === true ? false : undefined;
    const settings = { ...settingsOf(options), disabled };
    const client = accepted(
      await withStore(context, options, ({ database, rules }) => updateClient(database, rules, id, settings)),
    );
    await context.printData(shown(client), options.output, () => `client ${id} changed\n`);
  });
}

function addSecret(command: Command, context: CommandContext): void {
  const secret = command.command("secret").argument("<id>").description("give a client a new secret");
  secret
    .option("--secret-stdin", "read it from standard input instead of making one")
    .option("--overlap <duration>", "let the one before pass too for so long, such as 1d (default: it ends at once)")
    .option("--end-previous", "make no new one: end the one before, ahead of its time");
  addOutputOption(addStoreOptions(secret));
  addExamples(secret, [
    ["tulle auth client secret web --overlap 1d", "a new secret; the old one passes for a day more"],
    ["tulle auth client secret web --end-previous", "the old one ends now"],
  ]);
  secret.action(async (id: string, options: Options & SecretOptions) => {
    if (options.endPrevious === true) return endPrevious(context, id, options);
    const overlapMs = options.overlap === undefined ? undefined : parseDurationMs(options.overlap);
    if (options.overlap !== undefined && overlapMs === undefined)
      throw new CommandFailure(`--overlap ${options.overlap} is no duration such as 12h or 1d`, {
        exitCode: exitCodes.usage,
      });
    const given = options.secretStdin === true ? await secretFromStdin(context, "secret") : undefined;
    const replaced = await withStore(context, options, ({ database }) =>
      replaceClientSecret(database, id, { secret: given, overlapMs }),
    );
    return printSecret(context, options, accepted(replaced));
  });
}

interface SecretOptions {
  readonly secretStdin?: boolean;
  readonly overlap?: string;
  readonly endPrevious?: boolean;
}

async function endPrevious(context: CommandContext, id: string, options: Options & SecretOptions): Promise<void> {
  if (options.overlap !== undefined || options.secretStdin === true)
    throw new CommandFailure("--end-previous makes no new secret: leave --overlap and --secret-stdin out", {
      exitCode: exitCodes.usage,
    });
  const client = accepted(await withStore(context, options, ({ database }) => endPreviousSecret(database, id)));
  await context.printData(shown(client), options.output, () => `the previous secret of ${id} has ended\n`);
}
