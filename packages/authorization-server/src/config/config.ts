// Configuration: collected from flags, environment, file and defaults (in that order of precedence), checked as a
// whole, and turned into one frozen value. Every mistake is reported at once, each with where it came from.
import { readFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import type { LogLevel } from "@tulle/telemetry";
import { parse as parseYaml } from "yaml";
import type { SigningAlgorithm } from "../keys/jwt.ts";
import type { LanguageTag } from "../pages/languages.ts";
import { languageTags } from "../pages/languages.ts";
import type { TokenForm } from "./token-form.ts";
import { tokenForm, tokenFormProblems } from "./token-form.ts";
import { parseDurationMs } from "./durations.ts";
import { helpText } from "./help-text.ts";
import type { Setting } from "./settings.ts";
import { environmentName, settings, valueProblem } from "./settings.ts";

export interface Lifetimes {
  readonly codeMs: number;
  readonly accessTokenMs: number;
  readonly idTokenMs: number;
  readonly refreshTokenMs: number;
  readonly sessionMs: number;
  readonly sessionIdleMs: number;
  readonly interactionMs: number;
  readonly consentMs: number;
  readonly auditMs: number;
}

export interface Config {
  /** Without a trailing slash. */
  readonly issuer: string;
  /** What the pages call the server, beside its host. */
  readonly name: string | undefined;
  readonly host: string;
  readonly port: number;
  readonly dataDir: string;
  /** PostgreSQL's URL; SQLite in the data directory when undefined. */
  readonly databaseUrl: string | undefined;
  readonly keyEncryptionKeyFile: string | undefined;
  readonly strict: boolean;
  /** RFC 9700 §4.11: where anybody can register a client, an error at once would be an open redirector. */
  readonly errorsAfterSignIn: boolean;
  readonly demo: boolean;
  readonly demoPassword: string | undefined;
  readonly demoClientSecret: string | undefined;
  readonly demoRedirectUri: string;
  readonly demoPostLogoutRedirectUri: string | undefined;
  /** Empty = there is no such client. */
  readonly demoGatewayRedirectUris: readonly string[];
  readonly demoGatewayPostLogoutRedirectUris: readonly string[];
  readonly defaultAudience: string;
  /** Of pages for whom neither the request nor the browser names one that is there. */
  readonly language: LanguageTag;
  /** By scope, or by scope and language as `scope#de`. */
  readonly scopeTexts: ReadonlyMap<string, string>;
  readonly trustedProxies: readonly string[];
  readonly signingAlgorithm: SigningAlgorithm;
  /** By audience; `defaultTokenForm` for all others. */
  readonly audienceTokens: ReadonlyMap<string, TokenForm>;
  readonly defaultTokenForm: TokenForm;
  readonly keyRotationMs: number;
  readonly keyPublishAheadMs: number;
  readonly lifetimes: Lifetimes;
  readonly passwordMemoryKib: number;
  readonly passwordIterations: number;
  readonly metrics: "loopback" | "any" | "off";
  readonly logFormat: "text" | "json";
  readonly logLevel: LogLevel;
}

export interface ConfigSources {
  readonly argv: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** For administration of the store alone, which needs less than serving does. */
  readonly storeOnly?: boolean;
  /** Reads the configuration file; throws as node:fs does. */
  readonly readFile?: (file: string) => string;
}

export type ConfigResult =
  | { readonly config: Config; readonly problems?: never }
  | { readonly problems: readonly string[]; readonly config?: never }
  | { readonly help: string; readonly config?: never; readonly problems?: never };

interface Given {
  readonly value: string;
  readonly from: string;
}

export function loadConfig(sources: ConfigSources): ConfigResult {
  const problems: string[] = [];
  const flags = readFlags(sources.argv, problems);
  if (flags["help"] === true) return { help: helpText() };
  const file = readFile(flags["config"] ?? sources.environment["TULLE_AUTH_CONFIG"], sources, problems);
  for (const name of Object.keys(sources.environment)) {
    if (!name.startsWith("TULLE_AUTH_") || name === "TULLE_AUTH_CONFIG") continue;
    if (!settings.some((setting) => environmentName(setting) === name))
      problems.push(`environment ${name}: no such setting`);
  }
  const given = new Map<string, Given>();
  for (const setting of settings) {
    const found = findValue(setting, flags, sources.environment, file);
    const problem = valueProblem(setting, found.value);
    if (problem !== undefined) problems.push(`${found.from}: "${found.value}" ${problem}`);
    // The other checks are made all the same, and need some value.
    given.set(setting.name, problem === undefined ? found : { value: setting.fallback, from: found.from });
  }
  const audienceTokens = given.get("audience-tokens")!;
  for (const problem of tokenFormProblems(mapEntries(audienceTokens.value)))
    problems.push(`${audienceTokens.from}: ${problem}`);
  const config = build((name) => given.get(name)!.value);
  checkTogether(config, problems, sources.storeOnly === true);
  return problems.length > 0 ? { problems } : { config };
}

type FlagOptions = Readonly<Record<string, { readonly type: "string" | "boolean"; readonly short?: string }>>;

/** Not in parseArgs' strict mode, which stops at the first mistake; its messages are kept. */
function readFlags(argv: readonly string[], problems: string[]): Record<string, string | boolean> {
  const options: FlagOptions = {
    config: { type: "string" },
    help: { type: "boolean", short: "h" },
    ...Object.fromEntries(
      settings.map(({ name, kind }) => [name, { type: kind === "flag" ? ("boolean" as const) : ("string" as const) }]),
    ),
  };
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, allowPositionals: true, tokens: true });
  const values: Record<string, string | boolean> = {};
  let isAfterUnknown = false;
  for (const token of tokens) {
    if (token.kind === "option") {
      const type = options[token.name]?.type;
      isAfterUnknown = type === undefined;
      const problem = flagProblem(token, type);
      if (problem === undefined) values[token.name] = token.value ?? true;
      else problems.push(`${problem}; --help lists the flags`);
    } else if (token.kind === "positional") {
      // The value of a flag that was mistyped is no mistake of its own.
      if (!isAfterUnknown) problems.push(`Unexpected argument '${token.value}'; --help lists the flags`);
      isAfterUnknown = false;
    }
  }
  return values;
}

function flagProblem(
  { rawName, value, inlineValue }: { rawName: string; value: string | undefined; inlineValue: boolean | undefined },
  type: "string" | "boolean" | undefined,
): string | undefined {
  if (type === undefined) return `Unknown option '${rawName}'${nearestFlag(rawName)}`;
  if (type === "boolean") return value === undefined ? undefined : `Option '${rawName}' does not take an argument`;
  // What looks like a flag is one, unless it is joined by "=": somebody has forgotten the value.
  const isMissing = value === undefined || (inlineValue !== true && /^-./.test(value));
  return isMissing ? `Option '${rawName} <value>' argument missing` : undefined;
}

function nearestFlag(rawName: string): string {
  const nearest = rawName.startsWith("--") ? nearestSetting(rawName.slice(2)) : undefined;
  return nearest === undefined ? "" : ` (did you mean --${nearest}?)`;
}

function nearestSetting(asked: string): string | undefined {
  let best: { name: string; distance: number } | undefined;
  for (const { name } of settings) {
    const distance = editDistance(asked, name);
    if (best === undefined || distance < best.distance) best = { name, distance };
  }
  return best !== undefined && best.distance <= 3 ? best.name : undefined;
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const substitution = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      current.push(Math.min(previous[j]! + 1, current[j - 1]! + 1, substitution));
    }
    previous = current;
  }
  return previous[b.length]!;
}

function readFile(
  file: string | boolean | undefined,
  sources: ConfigSources,
  problems: string[],
): ReadonlyMap<string, Given> {
  const values = new Map<string, Given>();
  if (typeof file !== "string") return values;
  let content: unknown;
  try {
    content = parseYaml((sources.readFile ?? ((name) => readFileSync(name, "utf8")))(file));
  } catch (error) {
    problems.push(`${file}: ${(error as Error).message}`);
    return values;
  }
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    problems.push(`${file}: is no mapping of settings`);
    return values;
  }
  for (const [key, value] of Object.entries(content)) {
    const setting = settings.find((candidate) => candidate.name === key || camelCase(candidate.name) === key);
    if (setting === undefined) {
      const nearest = nearestSetting(key);
      problems.push(`${file}: no setting "${key}"${nearest === undefined ? "" : `, did you mean "${nearest}"?`}`);
    } else values.set(setting.name, { value: fileValue(value), from: `${file}: ${key}` });
  }
  return values;
}

function camelCase(name: string): string {
  return name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** Lists and maps may be written as such in a file; everywhere else they are one string. */
function fileValue(value: unknown): string {
  if (Array.isArray(value)) return value.map(String).join(",");
  if (typeof value === "object" && value !== null) {
    return Object.entries(value)
      .map(([name, item]) => `${name}=${String(item)}`)
      .join(";");
  }
  return String(value);
}

function findValue(
  setting: Setting,
  flags: Readonly<Record<string, string | boolean | undefined>>,
  environment: Readonly<Record<string, string | undefined>>,
  file: ReadonlyMap<string, Given>,
): Given {
  const flagValue = flags[setting.name];
  if (flagValue !== undefined) return { value: String(flagValue), from: `--${setting.name}` };
  const ownName = environmentName(setting);
  const own = environment[ownName];
  if (own !== undefined) return { value: own, from: `environment ${ownName}` };
  // HOST and PORT are how the mesh's local platform, and many others, tell a workload where to listen.
  const shared = setting.name === "host" || setting.name === "port" ? setting.name.toUpperCase() : undefined;
  const fromPlatform = shared === undefined ? undefined : environment[shared];
  const inFile = file.get(setting.name);
  if (inFile !== undefined) return inFile;
  if (fromPlatform !== undefined) return { value: fromPlatform, from: `environment ${shared}` };
  return { value: setting.fallback, from: `default of ${setting.name}` };
}

function entries(list: string): readonly string[] {
  return list
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}

function mapEntries(text: string): ReadonlyArray<readonly [string, string]> {
  return text
    .split(";")
    .filter((entry) => entry.trim() !== "")
    .map((entry) => [entry.slice(0, entry.indexOf("=")).trim(), entry.slice(entry.indexOf("=") + 1).trim()]);
}

function build(value: (name: string) => string): Config {
  const ms = (name: string): number => parseDurationMs(value(name))!;
  const optional = (name: string): string | undefined => (value(name) === "" ? undefined : value(name));
  const issuer = (optional("issuer") ?? `http://localhost:${value("port")}`).replace(/\/+$/, "");
  const defaultTokenForm: TokenForm = {
    algorithm: value("signing-algorithm") as SigningAlgorithm,
    type: value("strict") === "true" ? "at+jwt" : "JWT",
  };
  return Object.freeze({
    issuer,
    name: optional("name"),
    host: value("host"),
    port: Number(value("port")),
    dataDir: path.resolve(value("data-dir")),
    databaseUrl: optional("database"),
    keyEncryptionKeyFile: optional("key-encryption-key-file"),
    strict: value("strict") === "true",
    errorsAfterSignIn: value("strict") === "true" || value("errors-after-sign-in") === "true",
    demo: value("demo") === "true",
    demoPassword: optional("demo-password"),
    demoClientSecret: optional("demo-client-secret"),
    demoRedirectUri: optional("demo-redirect-uri") ?? `${issuer}/demo/callback`,
    demoPostLogoutRedirectUri: optional("demo-post-logout-redirect-uri"),
    demoGatewayRedirectUris: entries(value("demo-gateway-redirect-uris")),
    demoGatewayPostLogoutRedirectUris: entries(value("demo-gateway-post-logout-redirect-uris")),
    defaultAudience: optional("default-audience") ?? issuer,
    language: value("language") as LanguageTag,
    scopeTexts: new Map(mapEntries(value("scopes"))),
    trustedProxies: entries(value("trusted-proxies")),
    signingAlgorithm: defaultTokenForm.algorithm,
    audienceTokens: new Map(
      mapEntries(value("audience-tokens")).map(([audience, text]) => [audience, tokenForm(text, defaultTokenForm)]),
    ),
    defaultTokenForm,
    keyRotationMs: ms("key-rotation"),
    keyPublishAheadMs: ms("key-publish-ahead"),
    lifetimes: {
      codeMs: ms("code-lifetime"),
      accessTokenMs: ms("access-token-lifetime"),
      idTokenMs: ms("id-token-lifetime"),
      refreshTokenMs: ms("refresh-token-lifetime"),
      sessionMs: ms("session-lifetime"),
      sessionIdleMs: ms("session-idle"),
      interactionMs: ms("interaction-lifetime"),
      consentMs: ms("consent-lifetime"),
      auditMs: ms("audit-lifetime"),
    },
    passwordMemoryKib: Number(value("password-memory-kib")),
    passwordIterations: Number(value("password-iterations")),
    metrics: value("metrics") as Config["metrics"],
    logFormat: value("log-format") as Config["logFormat"],
    logLevel: value("log-level") as LogLevel,
  });
}

/** The scopes that `scopes` names, each once whatever the languages. */
export function describedScopes({ scopeTexts }: Config): readonly string[] {
  const translated = new RegExp(`#(${languageTags.join("|")})$`);
  return [...new Set([...scopeTexts.keys()].map((name) => name.replace(translated, "")))];
}

export function isLoopbackIssuer(issuer: string): boolean {
  return ["localhost", "127.0.0.1", "[::1]"].includes(new URL(issuer).hostname);
}

/** RFC 8414 §2 and RFC 9207 §2: https, no query, no fragment. http is for a developer's own machine. */
export function issuerProblem(issuer: string): string | undefined {
  if (!URL.canParse(issuer)) return "is no absolute URL";
  const url = new URL(issuer);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isLoopbackIssuer(issuer)))
    return "must be https (http only for localhost, 127.0.0.1 and [::1])";
  if (/[?#]/.test(issuer)) return "must have no query and no fragment";
  if (url.username !== "" || url.password !== "") return "must have no user information";
  const normal = url.pathname === "/" ? url.origin : url.href;
  if (normal !== issuer) return `must be written in its normal form, ${normal}`;
  if (/\/(\.well-known|healthz|readyz|metrics)(\/|$)/.test(url.pathname)) return "has a reserved path";
  return undefined;
}

/**
 * How long readers of the key set keep it: the `max-age` that it is sent with, and what a control plane of the mesh
 * waits.
 */
export const keySetLifeMs = 300_000;

function checkTogether(config: Config, problems: string[], storeOnly: boolean): void {
  const issuer = issuerProblem(config.issuer);
  if (issuer !== undefined) problems.push(`issuer: "${config.issuer}" ${issuer}`);
  if (config.name !== undefined && (config.name.length > 60 || /[\p{Cc}\p{Cf}]/u.test(config.name)))
    problems.push("name: has 60 characters at most and no control characters");
  if (config.port > 65_535) problems.push(`port: ${config.port} is no port`);
  if (config.lifetimes.codeMs > 600_000 || config.lifetimes.codeMs < 1000)
    problems.push("code-lifetime: must be between 1s and 10m (RFC 6749 §4.1.2)");
  if (config.lifetimes.accessTokenMs < 1000) problems.push("access-token-lifetime: must be 1s at least");
  if (config.keyPublishAheadMs < 2 * keySetLifeMs)
    problems.push("key-publish-ahead: must be 10m at least, for readers keep the key set for 5m");
  if (config.keyPublishAheadMs >= config.keyRotationMs)
    problems.push("key-publish-ahead: must be shorter than key-rotation");
  if (config.passwordMemoryKib < 8) problems.push("password-memory-kib: argon2 needs 8 at least");
  if (config.passwordIterations < 1) problems.push("password-iterations: must be 1 at least");
  if (config.demo && issuer === undefined && !isLoopbackIssuer(config.issuer))
    problems.push(`demo: only for an issuer on this machine, not ${config.issuer}`);
  if (config.databaseUrl !== undefined && !/^postgres(ql)?:\/\//.test(config.databaseUrl))
    problems.push("database: only postgres:// URLs; leave it out for SQLite in the data directory");
  if (config.databaseUrl !== undefined && config.keyEncryptionKeyFile === undefined && !storeOnly)
    problems.push(
      "key-encryption-key-file: needed with PostgreSQL; make one with: openssl rand -base64 32 > key; chmod 600 key",
    );
}
