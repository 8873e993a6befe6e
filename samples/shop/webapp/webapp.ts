// The web front end's API: it reads from the catalog and hands on what that answers.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Handler } from "../serve.ts";
import { headersToForward, methodIs, pathOf, reasonOf, sendJson, sendText } from "../serve.ts";

export interface WebappOptions {
  /** Base URL of the catalog, such as `http://catalog`. */
  readonly catalogUrl: string;
  /** Longest wait for the catalog; retries inside the mesh count into it. */
  readonly timeoutMs?: number;
}

export function createWebapp(options: WebappOptions): Handler {
  return async (request, response) => {
    const path = pathOf(request) ?? "";
    if (path === "/health") return sendText(response, 200, "ok\n");
    const item = /^\/api\/catalog\/items\/([^/]+)$/.exec(path)?.[1];
    if (path !== "/api/catalog" && item === undefined) {
      return sendJson(response, 404, { error: `no such path: ${path}` });
    }
    if (!methodIs(request, response, "GET")) return;
    const target = item === undefined ? "/items" : `/items/${item}`;
    await handOn(request, response, new URL(target, options.catalogUrl), options.timeoutMs ?? 20_000);
  };
}

/** Answers with the catalog's status and body; 502 when it could not be asked, 504 when it took too long. */
async function handOn(request: IncomingMessage, response: ServerResponse, url: URL, timeoutMs: number): Promise<void> {
  let status: number;
  let body: Buffer;
  let contentType: string | null;
  try {
    const answer = await fetch(url, { headers: headersToForward(request), signal: AbortSignal.timeout(timeoutMs) });
    status = answer.status;
    contentType = answer.headers.get("content-type");
    body = Buffer.from(await answer.arrayBuffer());
  } catch (error) {
    const timedOut = error instanceof Error && error.name === "TimeoutError";
    process.stderr.write(`GET ${url.href}: ${reasonOf(error)}\n`);
    return sendJson(response, timedOut ? 504 : 502, { error: "the catalog does not answer" });
  }
  response.writeHead(status, { "content-type": contentType ?? "application/json", "content-length": body.length });
  response.end(body);
}
