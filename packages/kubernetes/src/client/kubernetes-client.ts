// Requests to an API server: credentials, one answer or a stream of lines, refusals as errors. Whoever calls gives
// paths; which kinds there are is not its business.
import type { Readable } from "node:stream";
import { Agent, type Dispatcher, ProxyAgent, WebSocket } from "undici";
import type { ClusterAccess, Credentials } from "./cluster-access.ts";
import { errorOfAnswer, KubernetesError } from "./kubernetes-error.ts";

export interface KubernetesRequest {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** From the server's root: `/api/v1/namespaces/shop/services`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  /** Of the body; JSON unless told. A patch says its kind by it. */
  readonly contentType?: string;
  /** JSON unless told. */
  readonly accept?: string;
  readonly signal?: AbortSignal;
}

/** An answer may come late on a busy server; what takes longer is lost. */
const answerTimeoutMs = 60_000;
/** Of one answer that is read as a whole: a page of a list holds 500 objects of 1.5 MiB at most. */
const mostAnswerBytes = 1024 * 1024 * 1024;
/** How long a connection is made. */
const connectTimeoutMs = 10_000;
/** Requests at the same time: each stream of a watch has one of them for good. */
const mostConnections = 128;

export class KubernetesClient {
  readonly access: ClusterAccess;
  readonly #userAgent: string;
  #dispatcher: { readonly certificatePem: string | undefined; readonly agent: Dispatcher } | undefined;

  readonly #idleMs: number | undefined;

  /**
   * `userAgent` is what the API server's audit log calls the program. `idleMs`: how long a connection is kept that
   * nobody uses, for programs that end when all is said.
   */
  constructor(access: ClusterAccess, userAgent: string, idleMs?: number) {
    this.access = access;
    this.#userAgent = userAgent;
    this.#idleMs = idleMs;
  }

  /** The answer's JSON. @throws {KubernetesError} */
  async request<T>(request: KubernetesRequest): Promise<T> {
    const { body, headers } = await this.#send(request);
    const text = await this.#read(body);
    try {
      return JSON.parse(text) as T;
    } catch {
      const type = String(headers["content-type"]);
      throw new KubernetesError(0, "", `${this.access.server} answered ${request.path} with ${type}, which is no JSON`);
    }
  }

  /**
   * Server-side apply: what the object says becomes `fieldManager`'s, whoever had it before, and fields of others stay
   * theirs. Resolves to the object as it is then. @throws {KubernetesError}
   */
  apply<T>(path: string, body: object, fieldManager: string, query: KubernetesRequest["query"] = {}): Promise<T> {
    const contentType = "application/apply-patch+yaml";
    return this.request({ method: "PATCH", path, query: { fieldManager, force: true, ...query }, contentType, body });
  }

  /** The answer as it stands, such as a log. @throws {KubernetesError} */
  async text(request: KubernetesRequest): Promise<string> {
    return this.#read((await this.#send(request)).body);
  }

  /** The answer as it comes, for as long as it does. @throws {KubernetesError} for a refusal */
  async stream(request: KubernetesRequest): Promise<Readable> {
    return (await this.#send(request, { bodyTimeout: 0 })).body;
  }

  /** A WebSocket, which opens or fails by its events. */
  async webSocket(path: string, protocols: readonly string[]): Promise<WebSocket> {
    const credentials = await this.access.credentials.current();
    const { origin, pathname } = new URL(this.access.server);
    const url = `${origin.replace(/^http/, "ws")}${pathname === "/" ? "" : pathname}${path}`;
    return new WebSocket(url, {
      protocols: [...protocols],
      dispatcher: this.#agentFor(credentials),
      headers: {
        "user-agent": this.#userAgent,
        ...authorization(credentials),
        ...(this.#impersonation() as Readonly<Record<string, string>>),
      },
    });
  }

  /** Ends what is under way. */
  async close(): Promise<void> {
    const { agent } = this.#dispatcher ?? {};
    this.#dispatcher = undefined;
    await agent?.destroy();
  }

  async #send(request: KubernetesRequest, timeouts: { bodyTimeout?: number } = {}): Promise<Dispatcher.ResponseData> {
    const credentials = await this.access.credentials.current();
    const answer = await this.#sendAs(credentials, request, timeouts);
    if (answer.statusCode !== 401) return this.#checked(answer);
    this.access.credentials.refused(credentials);
    const others = await this.access.credentials.current();
    // Nothing newer is there: what the server said of these stands.
    if (others === credentials) return this.#checked(answer);
    await answer.body.dump();
    return this.#checked(await this.#sendAs(others, request, timeouts));
  }

  async #sendAs(
    credentials: Credentials,
    request: KubernetesRequest,
    timeouts: { bodyTimeout?: number },
  ): Promise<Dispatcher.ResponseData> {
    const { method = "GET", path, query = {}, body, contentType = "application/json", accept, signal } = request;
    const { origin, pathname } = new URL(this.access.server);
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value));
    const search = parameters.size === 0 ? "" : `?${parameters.toString()}`;
    try {
      return await this.#agentFor(credentials).request({
        origin,
        path: `${pathname === "/" ? "" : pathname}${path}${search}`,
        method,
        headers: {
          "user-agent": this.#userAgent,
          accept: accept ?? "application/json",
          ...(body === undefined ? {} : { "content-type": contentType }),
          ...authorization(credentials),
          ...this.#impersonation(),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal === undefined ? {} : { signal }),
        headersTimeout: answerTimeoutMs,
        bodyTimeout: answerTimeoutMs,
        ...timeouts,
      });
    } catch (error) {
      if (signal?.aborted === true) throw error;
      const { server } = this.access;
      throw new KubernetesError(0, "", `${server} cannot be reached: ${causeOf(error)}`);
    }
  }

  async #checked(answer: Dispatcher.ResponseData): Promise<Dispatcher.ResponseData> {
    if (answer.statusCode < 300) return answer;
    const retryAfter = answer.headers["retry-after"];
    const body = await this.#read(answer.body);
    throw errorOfAnswer(answer.statusCode, body, typeof retryAfter === "string" ? retryAfter : undefined);
  }

  async #read(body: Readable): Promise<string> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const chunk of body as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > mostAnswerBytes) throw new Error(`an answer of more than ${mostAnswerBytes} bytes`);
        chunks.push(chunk);
      }
    } catch (error) {
      throw new KubernetesError(0, "", `${this.access.server} broke off its answer: ${causeOf(error)}`);
    }
    return Buffer.concat(chunks).toString("utf8");
  }

  /** Connections carry the certificate that they were made with: another one has connections of its own. */
  #agentFor({ certificatePem, keyPem }: Credentials): Dispatcher {
    if (this.#dispatcher !== undefined && this.#dispatcher.certificatePem === certificatePem)
      return this.#dispatcher.agent;
    void this.#dispatcher?.agent.close();
    const { authorityPem, serverName, anyCertificate, proxyUrl } = this.access;
    const tls = {
      ...(authorityPem === undefined ? {} : { ca: authorityPem }),
      ...(serverName === undefined ? {} : { servername: serverName }),
      ...(certificatePem === undefined ? {} : { cert: certificatePem, key: keyPem! }),
      rejectUnauthorized: !anyCertificate,
    };
    const idleMs = this.#idleMs;
    const idle = idleMs === undefined ? {} : { keepAliveTimeout: idleMs, keepAliveMaxTimeout: idleMs };
    const common = { connections: mostConnections, pipelining: 1, connectTimeout: connectTimeoutMs, ...idle };
    const agent =
      proxyUrl === undefined
        ? new Agent({ ...common, connect: { ...tls, timeout: connectTimeoutMs } })
        : new ProxyAgent({ ...common, uri: proxyUrl, requestTls: tls });
    this.#dispatcher = { certificatePem, agent };
    return agent;
  }

  #impersonation(): Readonly<Record<string, string | string[]>> {
    const as = this.access.impersonation;
    if (as === undefined) return {};
    const extra = Object.entries(as.extra).map(([key, values]) => [
      `impersonate-extra-${encodeURIComponent(key.toLowerCase())}`,
      [...values],
    ]);
    return {
      "impersonate-user": as.user,
      ...(as.uid === undefined ? {} : { "impersonate-uid": as.uid }),
      ...(as.groups.length === 0 ? {} : { "impersonate-group": [...as.groups] }),
      ...(Object.fromEntries(extra) as Readonly<Record<string, string[]>>),
    };
  }
}

function authorization({ token, basic }: Credentials): Readonly<Record<string, string>> {
  if (token !== undefined) return { authorization: `Bearer ${token}` };
  if (basic === undefined) return {};
  const pair = Buffer.from(`${basic.username}:${basic.password}`).toString("base64");
  return { authorization: `Basic ${pair}` };
}

/** Undici wraps the reason that a person can act on. */
function causeOf(error: unknown): string {
  let deepest = error;
  while (deepest instanceof Error && deepest.cause instanceof Error) deepest = deepest.cause;
  if (deepest instanceof AggregateError && deepest.errors[0] instanceof Error) deepest = deepest.errors[0];
  return deepest instanceof Error ? deepest.message : String(deepest);
}
