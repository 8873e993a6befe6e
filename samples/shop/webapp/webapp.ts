// The web front end's API: it reads from the catalog, changes prices there, and hands on what that answers.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Handler } from "../serve.ts";
import { headersToForward, methodIs, pathOf, readBody, reasonOf, sendJson, sendText } from "../serve.ts";
import type { CatalogByGrpc } from "./catalog-by-grpc.ts";

export interface WebappOptions {
  /** Base URL of the catalog, such as `http://catalog`. */
  readonly catalogUrl: string;
  /** What the catalog is read by in the place of HTTP. */
  readonly byGrpc?: CatalogByGrpc;
  /** Longest wait for the catalog; retries inside the mesh count into it. */
  readonly timeoutMs?: number;
}

const maxBodyBytes = 1024;
/** A status of gRPC. */
const deadlineExceeded = 4;

export function createWebapp(options: WebappOptions): Handler {
  return async (request, response) => {
    const path = pathOf(request) ?? "";
    if (path === "/health") return sendText(response, 200, "ok\n");
    const item = /^\/api\/catalog\/items\/([^/]+)$/.exec(path)?.[1];
    if (path !== "/api/catalog" && item === undefined) {
      return sendJson(response, 404, { error: `no such path: ${path}` });
    }
    if (!methodIs(request, response, "GET", ...(item === undefined ? [] : ["PUT"]))) return;
    const timeoutMs = options.timeoutMs ?? 20_000;
    if (options.byGrpc !== undefined && request.method !== "PUT") {
      return readByGrpc(options.byGrpc, item, request, response, timeoutMs);
    }
    const target = item === undefined ? "/items" : `/items/${item}`;
    const change = request.method === "PUT" ? await readChange(request) : { headers: {} };
    if (change === undefined)
      return sendJson(response, 413, { error: `the body is longer than ${maxBodyBytes} bytes` });
    await handOn(request, response, new URL(target, options.catalogUrl), {
      ...change,
      headers: { ...headersToForward(request), ...change.headers },
      signal: AbortSignal.timeout(timeoutMs),
    });
  };
}

async function readByGrpc(
  catalog: CatalogByGrpc,
  item: string | undefined,
  request: IncomingMessage,
  response: ServerResponse,
  timeoutMs: number,
): Promise<void> {
  try {
    const { status, body } = await catalog.read(item, headersToForward(request), timeoutMs);
    sendJson(response, status, body);
  } catch (error) {
    const { code } = error as { readonly code?: number };
    sendNoAnswer(request, response, error, code === deadlineExceeded ? 504 : 502);
  }
}

/**
 * What a change says, and the token of whoever asks for it: the catalog decides about both. Undefined when it is too
 * long.
 */
async function readChange(
  request: IncomingMessage,
): Promise<{ method: string; body: string; headers: Record<string, string> } | undefined> {
  const body = await readBody(request, maxBodyBytes);
  if (body === undefined) return undefined;
  const { authorization } = request.headers;
  const token = authorization === undefined ? {} : { authorization };
  return { method: "PUT", body, headers: { "content-type": "application/json", ...token } };
}

/** Headers of an answer that are for whoever asked. */
const answeredHeaders = ["content-type", "www-authenticate"];

/** Answers with the catalog's status and body; 502 when it could not be asked, 504 when it took too long. */
async function handOn(request: IncomingMessage, response: ServerResponse, url: URL, asked: RequestInit): Promise<void> {
  let status: number;
  let body: Buffer;
  let headers: Record<string, string>;
  try {
    const answer = await fetch(url, asked);
    status = answer.status;
    headers = Object.fromEntries([...answer.headers].filter(([name]) => answeredHeaders.includes(name)));
    body = Buffer.from(await answer.arrayBuffer());
  } catch (error) {
    const timedOut = error instanceof Error && error.name === "TimeoutError";
    return sendNoAnswer(request, response, error, timedOut ? 504 : 502);
  }
  response.writeHead(status, { "content-type": "application/json", ...headers, "content-length": body.length });
  response.end(body);
}

function sendNoAnswer(request: IncomingMessage, response: ServerResponse, error: unknown, status: number): void {
  process.stderr.write(`${request.method} ${request.url}: ${reasonOf(error)}\n`);
  sendJson(response, status, { error: "the catalog does not answer" });
}
