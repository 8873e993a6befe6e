/**
 * Client of the control plane's HTTP API: what the command line and the local platform read and write resources with.
 * It asks by the Unix socket of the state directory, or by TLS with the token: nothing of the mesh goes to whoever may
 * have taken a port.
 */
import type { IncomingMessage, RequestOptions } from "node:http";
import type { Duplex } from "node:stream";
import { endpoints } from "./api.ts";
import type { ApplyRequest, ApplyResponse, ErrorResponse, ListResponse } from "./answers.ts";
import { type AnswerOf, type BodyOf, type JsonEndpoint, type ParametersOf, pathOf } from "./endpoint.ts";
import type { Finding } from "../findings/finding.ts";
import type { Kind } from "../kinds/kinds.ts";
import { placesOf } from "../findings/places.ts";
import type { PlaceTable } from "../findings/places.ts";
import type { MeshResource, ResourceOf } from "../kinds/resource.ts";
import type { ResourceKey } from "../findings/finding.ts";
import type { DeleteOptions } from "../store/store.ts";
import { ResourceWatch } from "./resource-watch.ts";
import type { ResourceWatchOptions } from "./resource-watch.ts";

// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start
// quickly").
const { request: httpRequest } = process.getBuiltinModule("node:http");

/** Longest answer that is read; a list of 20,000 pods is about 30 MB. */
export const maxResponseBytes = 256 * 1024 * 1024;
export const requestTimeoutMs = 30_000;

export interface ApiClientOptions {
  readonly endpoint: ApiEndpoint;
}

export type ApiEndpoint =
  /** The state directory's: whoever serves there is its owner. */
  | { readonly socketPath: string }
  /**
   * `https://host:15014`: the server has to show a certificate of the mesh's authority before it is sent the token.
   * `connect` is the way there, where it is no way of this machine's network.
   */
  | { readonly url: string; readonly token: string; readonly rootsPem: string; readonly connect?: () => Duplex }
  /**
   * `http://host:port`, for pages that are everybody's to read; it is sent nothing that is secret. `connect` is for
   * those of another network.
   */
  | { readonly url: string; readonly connect?: () => Duplex };

/** The name in the control plane's own certificate, whatever address it is reached at. */
export const controlPlaneName = "tulled.tulle-system.svc";

/** The control plane could not be asked, or answered with an error that is not about the resource itself. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** HTTP status; 0 when there was no answer. */
  readonly status: number;
  readonly findings: readonly Finding[];

  constructor(
    status: number,
    message: string,
    options: { readonly findings?: readonly Finding[]; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.status = status;
    this.findings = options.findings ?? [];
  }
}

/** Answer to an apply: as the server says, or refused with the reasons. */
export type ApplyAnswer =
  | ApplyResponse
  | { readonly outcome: "rejected"; readonly message: string; readonly findings: readonly Finding[] };

export class ApiClient {
  readonly #endpoint: ApiEndpoint;

  constructor({ endpoint }: ApiClientOptions) {
    if ("token" in endpoint && !endpoint.url.startsWith("https://")) {
      throw new ApiError(0, `a token is sent over https alone, and not to ${endpoint.url}`);
    }
    this.#endpoint = endpoint;
  }

  /** The resources of a kind, in all namespaces unless one is given. */
  async list<K extends Kind>(kind: K, namespace?: string): Promise<ListResponse<K>> {
    return (await this.call(endpoints.listResources, { kind, namespace })) as ListResponse<K>;
  }

  async get<K extends Kind>(kind: K, namespace: string, name: string): Promise<ResourceOf<K> | undefined> {
    const found = await unlessMissing(this.call(endpoints.readResource, { kind, namespace, name }));
    return found as ResourceOf<K> | undefined;
  }

  /**
   * Creates or replaces. `resource` may be unchecked: the server checks it, and a bad one is answered with `rejected`.
   */
  async apply(resource: MeshResource, places: PlaceTable | undefined = placesOf(resource)): Promise<ApplyAnswer> {
    const { kind, metadata } = resource;
    const body: ApplyRequest = places === undefined ? { resource } : { resource, places };
    const key = { kind, namespace: metadata.namespace, name: metadata.name };
    try {
      return await this.call(endpoints.applyResource, key, { body });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 422) throw error;
      return { outcome: "rejected", message: error.message, findings: error.findings };
    }
  }

  /**
   * The deleted resource; undefined when there was none. A pod that runs leaves in good order first, unless `atOnce`.
   */
  async delete(key: ResourceKey, { atOnce = false }: DeleteOptions = {}): Promise<MeshResource | undefined> {
    const gracePeriodSeconds = atOnce ? 0 : undefined;
    return (await unlessMissing(this.call(endpoints.deleteResource, { ...key, gracePeriodSeconds })))?.resource;
  }

  async findings(): Promise<readonly Finding[]> {
    return (await this.call(endpoints.findings, {})).findings;
  }

  /**
   * Follows the resources of `kinds`: first all that are there, then every change, across reconnections and lost
   * history. Close it when done.
   */
  watch(kinds: readonly Kind[], options: ResourceWatchOptions): ResourceWatch {
    return new ResourceWatch(this, kinds, options);
  }

  /**
   * Sends a request and gives the answer once its head is there. Used by the watch, which reads the body as it comes.
   */
  open(
    method: string,
    path: string,
    options: { readonly body?: string; readonly signal?: AbortSignal; readonly timeoutMs?: number } = {},
  ): Promise<IncomingMessage> {
    const { timeoutMs = requestTimeoutMs } = options;
    const headers: Record<string, string> = { accept: "application/json" };
    if ("token" in this.#endpoint) headers["authorization"] = `Bearer ${this.#endpoint.token}`;
    if (options.body !== undefined) {
      headers["content-type"] = "application/json";
      headers["content-length"] = String(Buffer.byteLength(options.body));
    }
    return new Promise((resolve, reject) => {
      const { request, ...where } = transportTo(this.#endpoint);
      const outgoing = request({
        ...where,
        method,
        path,
        headers,
        timeout: timeoutMs,
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      });
      outgoing.on("response", resolve);
      outgoing.on("timeout", () => outgoing.destroy(new Error(`no answer within ${timeoutMs} ms`)));
      outgoing.on("error", (error) => {
        reject(
          new ApiError(0, `the control plane at ${this.#where()} cannot be reached: ${error.message}`, {
            cause: error,
          }),
        );
      });
      outgoing.end(options.body);
    });
  }

  /** Asks an endpoint that answers JSON. @throws {ApiError} */
  async call<E extends JsonEndpoint>(
    endpoint: E,
    parameters: ParametersOf<E>,
    { body, timeoutMs = requestTimeoutMs }: { readonly body?: BodyOf<E>; readonly timeoutMs?: number } = {},
  ): Promise<AnswerOf<E>> {
    const { method } = endpoint;
    const path = pathOf(endpoint, parameters);
    const response = await this.open(method, path, {
      timeoutMs,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await readText(response);
    const status = response.statusCode ?? 0;
    const answer = parseJson(text);
    if (status >= 200 && status < 300) {
      if (answer === undefined) throw new ApiError(status, `${method} ${path}: the answer is not JSON`);
      return answer as AnswerOf<E>;
    }
    const failure = answer as Partial<ErrorResponse> | undefined;
    const message =
      failure?.error?.message ?? `${method} ${path}: the control plane at ${this.#where()} answered ${status}`;
    throw new ApiError(status, message, failure?.findings === undefined ? {} : { findings: failure.findings });
  }

  #where(): string {
    return "url" in this.#endpoint ? this.#endpoint.url : this.#endpoint.socketPath;
  }
}

async function unlessMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

/** How a request gets there, and by whom it is sent. */
function transportTo(endpoint: ApiEndpoint): { readonly request: typeof httpRequest } & RequestOptions {
  if ("socketPath" in endpoint) return { request: httpRequest, agent: false, socketPath: endpoint.socketPath };
  const { protocol, hostname, port } = new URL(endpoint.url);
  const host = hostname.replace(/^\[|\]$/g, "");
  if (!("token" in endpoint)) {
    const { connect } = endpoint;
    const how = connect === undefined ? { agent: false } : { createConnection: connect };
    return { request: httpRequest, ...how, host, port: port === "" ? "80" : port };
  }
  const secure = { ca: endpoint.rootsPem, servername: controlPlaneName, minVersion: "TLSv1.3" } as const;
  // Loaded where it is used: most of what is asked goes by a socket.
  const { request } = process.getBuiltinModule("node:https");
  const { connect } = endpoint;
  if (connect !== undefined) {
    const { connect: connectTls } = process.getBuiltinModule("node:tls");
    return { request, host, createConnection: () => connectTls({ ...secure, socket: connect() }) };
  }
  return { request, agent: false, protocol, host, port: port === "" ? "443" : port, ...secure };
}

/** The body of `response` as text. Errors of the stream reject. */
export async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxResponseBytes) throw new ApiError(0, `the answer is longer than ${maxResponseBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
