// The kubeconfig of kubectl: one file or several, of which the first that says a thing wins, and one context in it that
// names a cluster, a user and a namespace (Kubernetes' documentation: "Organizing Cluster Access Using kubeconfig").
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import type { Clock } from "@tulle/timing";
import { parse } from "yaml";
import { type ClusterAccess, type CredentialSource, fixedCredentials, type Impersonation } from "./cluster-access.ts";
import { execCommand, ExecCredentials, execVersions } from "./exec-credentials.ts";
import { TokenFile } from "./token-file.ts";

export interface KubeconfigOptions {
  /** The one file to read, which has to be there; without it `KUBECONFIG`'s files, or `~/.kube/config`. */
  readonly file?: string;
  /** The one that the file calls current, when missing. */
  readonly context?: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
}

/** What is wrong with a kubeconfig, in words that name the file. */
export class KubeconfigError extends Error {
  override readonly name = "KubeconfigError";
}

type Fields = Readonly<Record<string, unknown>>;

/** An entry with the file that it is from: paths in it are meant from there. */
interface Entry {
  readonly file: string;
  readonly fields: Fields;
}

interface Merged {
  readonly files: readonly string[];
  readonly clusters: ReadonlyMap<string, Entry>;
  readonly users: ReadonlyMap<string, Entry>;
  readonly contexts: ReadonlyMap<string, Entry>;
  readonly currentContext: string | undefined;
}

/** Undefined where there is no kubeconfig at all, and none was named. @throws {KubeconfigError} */
export async function kubeconfigAccess(options: KubeconfigOptions): Promise<ClusterAccess | undefined> {
  const merged = await readAll(options);
  if (merged === undefined) return undefined;
  const name = options.context ?? merged.currentContext;
  const where = merged.files.join(", ");
  if (name === undefined) {
    throw new KubeconfigError(`${where}: no context is chosen; name one of ${known(merged.contexts)} by --context`);
  }
  const context = merged.contexts.get(name);
  if (context === undefined) {
    throw new KubeconfigError(`${where}: there is no context "${name}"; there are ${known(merged.contexts)}`);
  }
  const cluster = referred(context, "cluster", merged.clusters, name);
  const userName = textOf(context, "user");
  const user = userName === undefined ? undefined : referred(context, "user", merged.users, name);
  const server = textOf(cluster, "server");
  if (server === undefined) throw new KubeconfigError(`${cluster.file}: the cluster of "${name}" has no server`);
  if (!/^https?:\/\/./.test(server)) throw new KubeconfigError(`${cluster.file}: the server "${server}" is no URL`);
  const authorityPem = await dataOf(cluster, "certificate-authority");
  const serverName = textOf(cluster, "tls-server-name");
  const proxyUrl = textOf(cluster, "proxy-url");
  const impersonation = user === undefined ? undefined : impersonationOf(user);
  return {
    server: server.replace(/\/+$/, ""),
    ...(authorityPem === undefined ? {} : { authorityPem }),
    ...(serverName === undefined ? {} : { serverName }),
    ...(proxyUrl === undefined ? {} : { proxyUrl }),
    ...(impersonation === undefined ? {} : { impersonation }),
    anyCertificate: cluster.fields["insecure-skip-tls-verify"] === true,
    credentials: user === undefined ? fixedCredentials({}) : await credentialsOf(user, cluster, options.clock),
    namespace: textOf(context, "namespace") ?? "default",
    origin: `${context.file}, context "${name}"`,
  };
}

async function readAll({ file, environment }: KubeconfigOptions): Promise<Merged | undefined> {
  const listed = (environment["KUBECONFIG"] ?? "").split(path.delimiter).filter((name) => name !== "");
  const home = environment["HOME"] ?? homedir();
  const names = file !== undefined ? [file] : listed.length > 0 ? listed : [path.join(home, ".kube", "config")];
  const merged = {
    files: [] as string[],
    clusters: new Map<string, Entry>(),
    users: new Map<string, Entry>(),
    contexts: new Map<string, Entry>(),
    currentContext: undefined as string | undefined,
  };
  for (const name of names) {
    const content = await readFile(name, "utf8").catch((error: NodeJS.ErrnoException) => {
      // As kubectl: of several, those that are not there are passed over.
      if (error.code === "ENOENT" && file === undefined) return undefined;
      throw new KubeconfigError(`${name} cannot be read: ${error.code ?? error.message}`);
    });
    if (content === undefined) continue;
    merged.files.push(name);
    const document = parsed(name, content);
    collect(merged.clusters, document, "clusters", "cluster", name);
    collect(merged.users, document, "users", "user", name);
    collect(merged.contexts, document, "contexts", "context", name);
    const current = document["current-context"];
    if (typeof current === "string" && current !== "") merged.currentContext ??= current;
  }
  return merged.files.length === 0 ? undefined : merged;
}

function parsed(file: string, content: string): Fields {
  let document: unknown;
  try {
    document = parse(content);
  } catch (error) {
    throw new KubeconfigError(`${file} is no kubeconfig: ${(error as Error).message}`);
  }
  // An empty file is one that says nothing.
  if (document === null) return {};
  if (!isFields(document)) throw new KubeconfigError(`${file} is no kubeconfig: it holds no mapping`);
  return document;
}

function collect(into: Map<string, Entry>, document: Fields, list: string, field: string, file: string): void {
  const entries = document[list] ?? [];
  if (!Array.isArray(entries)) throw new KubeconfigError(`${file}: ${list} is no list`);
  for (const entry of entries as readonly unknown[]) {
    const name = isFields(entry) ? entry["name"] : undefined;
    if (!isFields(entry) || typeof name !== "string")
      throw new KubeconfigError(`${file}: an entry of ${list} has no name`);
    const fields = entry[field] ?? {};
    if (!isFields(fields)) throw new KubeconfigError(`${file}: ${field} of "${name}" is no mapping`);
    if (!into.has(name)) into.set(name, { file, fields });
  }
}

function referred(context: Entry, field: string, entries: ReadonlyMap<string, Entry>, name: string): Entry {
  const wanted = textOf(context, field);
  const found = wanted === undefined ? undefined : entries.get(wanted);
  if (found !== undefined) return found;
  const what = wanted === undefined ? `has no ${field}` : `names the ${field} "${wanted}", which is not there`;
  throw new KubeconfigError(`${context.file}: the context "${name}" ${what}`);
}

async function credentialsOf(user: Entry, cluster: Entry, clock: Clock): Promise<CredentialSource> {
  if (user.fields["auth-provider"] !== undefined) {
    throw new KubeconfigError(`${user.file}: auth-provider is gone since Kubernetes 1.26; use exec`);
  }
  const exec = user.fields["exec"];
  const [certificatePem, keyPem] = [await dataOf(user, "client-certificate"), await dataOf(user, "client-key")];
  if ((certificatePem === undefined) !== (keyPem === undefined)) {
    throw new KubeconfigError(`${user.file}: client-certificate and client-key are needed together`);
  }
  const tokenFile = textOf(user, "tokenFile");
  const token = textOf(user, "token");
  const username = textOf(user, "username");
  const password = textOf(user, "password") ?? "";
  const own = certificatePem === undefined || keyPem === undefined ? {} : { certificatePem, keyPem };
  if (isFields(exec)) return withOwn(new ExecCredentials(await execPlugin(user, exec, cluster), clock), own);
  if (tokenFile !== undefined) {
    return withOwn(new TokenFile(path.resolve(path.dirname(user.file), tokenFile), clock), own);
  }
  if (token !== undefined) return fixedCredentials({ token, ...own });
  if (username !== undefined) return fixedCredentials({ basic: { username, password }, ...own });
  return fixedCredentials(own);
}

/** A certificate of the file stays beside a token that changes. */
function withOwn(source: CredentialSource, own: { certificatePem?: string; keyPem?: string }): CredentialSource {
  if (own.certificatePem === undefined) return source;
  let last: { readonly from: object; readonly joined: object } | undefined;
  return {
    async current() {
      const from = await source.current();
      if (last?.from !== from) last = { from, joined: { ...own, ...from } };
      return last.joined;
    },
    refused() {
      if (last !== undefined) source.refused(last.from);
    },
  };
}

async function execPlugin(user: Entry, exec: Fields, cluster: Entry) {
  const { apiVersion, command, args = [], env = [], installHint, interactiveMode, provideClusterInfo } = exec;
  const isKnown = execVersions.some((version) => version === apiVersion);
  if (typeof apiVersion !== "string" || !isKnown) {
    throw new KubeconfigError(
      `${user.file}: exec of ${String(apiVersion)}; ${execVersions.join(" and ")} are understood`,
    );
  }
  if (typeof command !== "string" || command === "") throw new KubeconfigError(`${user.file}: exec names no command`);
  const variables = (Array.isArray(env) ? (env as readonly unknown[]) : []).filter(isFields);
  return {
    apiVersion,
    command: execCommand(command, path.dirname(user.file)),
    args: Array.isArray(args) ? (args as readonly unknown[]).map(String) : [],
    environment: Object.fromEntries(variables.map(({ name, value }) => [String(name), String(value)])),
    interactiveMode: typeof interactiveMode === "string" ? interactiveMode : "IfAvailable",
    ...(typeof installHint === "string" ? { installHint } : {}),
    ...(provideClusterInfo === true ? { cluster: await clusterInfo(cluster) } : {}),
  };
}

/** ExecCredential's `spec.cluster`. */
async function clusterInfo(cluster: Entry): Promise<object> {
  const authority = await dataOf(cluster, "certificate-authority");
  return {
    server: textOf(cluster, "server"),
    ...(authority === undefined ? {} : { "certificate-authority-data": Buffer.from(authority).toString("base64") }),
    ...(cluster.fields["insecure-skip-tls-verify"] === true ? { "insecure-skip-tls-verify": true } : {}),
  };
}

function impersonationOf(user: Entry): Impersonation | undefined {
  const name = textOf(user, "as");
  if (name === undefined) return undefined;
  const uid = textOf(user, "as-uid");
  const groups = user.fields["as-groups"];
  const extra = user.fields["as-user-extra"];
  const texts = (value: unknown): readonly string[] => (Array.isArray(value) ? value.map(String) : []);
  return {
    user: name,
    ...(uid === undefined ? {} : { uid }),
    groups: texts(groups),
    extra: isFields(extra) ? Object.fromEntries(Object.entries(extra).map(([key, value]) => [key, texts(value)])) : {},
  };
}

/** `name-data` in base64, which wins, or the file that `name` is. */
async function dataOf(entry: Entry, name: string): Promise<string | undefined> {
  const data = textOf(entry, `${name}-data`);
  if (data !== undefined) return Buffer.from(data, "base64").toString("utf8");
  const file = textOf(entry, name);
  if (file === undefined) return undefined;
  const whole = path.resolve(path.dirname(entry.file), file);
  return readFile(whole, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new KubeconfigError(`${entry.file}: ${name} ${whole} cannot be read: ${error.code ?? error.message}`);
  });
}

function textOf({ fields }: Entry, name: string): string | undefined {
  const value = fields[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

function known(entries: ReadonlyMap<string, Entry>): string {
  return entries.size === 0 ? "none" : [...entries.keys()].map((name) => `"${name}"`).join(", ");
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
