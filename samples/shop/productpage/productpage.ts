// The second front end: a page for people, a small login, the same products as JSON, and static files.
import { readFile, readdir } from "node:fs/promises";
import path from "node:path";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Handler } from "../serve.ts";
import { headersToForward, methodIs, pathOf, readBody, reasonOf, sendJson, sendText } from "../serve.ts";
import type { Item } from "../catalog/items.ts";
import { loginPage, productPage } from "./pages.ts";

export interface ProductpageOptions {
  /** Base URL of the catalog, such as `http://catalog`. */
  readonly catalogUrl: string;
  readonly staticFolder: string;
}

interface StaticFile {
  readonly contentType: string;
  readonly bytes: Buffer;
}

const contentTypes: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Reads the static files once; only what is in the folder at the start is ever served, so no path can lead outside. */
async function readStaticFiles(folder: string): Promise<ReadonlyMap<string, StaticFile>> {
  const files = new Map<string, StaticFile>();
  for (const name of await readdir(folder)) {
    const contentType = contentTypes[path.extname(name)];
    if (contentType !== undefined) {
      files.set(`/static/${name}`, { contentType, bytes: await readFile(path.join(folder, name)) });
    }
  }
  return files;
}

export async function createProductpage(options: ProductpageOptions): Promise<Handler> {
  const staticFiles = await readStaticFiles(options.staticFolder);
  return async (request, response) => {
    const target = pathOf(request) ?? "";
    if (target === "/health") return sendText(response, 200, "ok\n");
    if (target === "/login") return login(request, response);
    if (target === "/logout") return redirect(response, "user=; Max-Age=0");
    if (target === "/") return redirect(response);
    const file = staticFiles.get(target);
    const product = /^\/api\/v1\/products(?:\/([^/]+))?$/.exec(target);
    if (target !== "/productpage" && file === undefined && product === null) {
      return sendJson(response, 404, { error: `no such path: ${target}` });
    }
    if (!methodIs(request, response, "GET")) return;
    if (file !== undefined) return sendStatic(response, file);
    const catalog = await readCatalog(options.catalogUrl, request);
    if (product !== null) return sendProducts(response, catalog, product[1]);
    sendHtml(response, 200, productPage({ user: userOf(request), catalog }));
  };
}

/** The catalog's items, or the status with which it refused; 0 when it could not be asked. */
export type CatalogAnswer = { readonly items: readonly Item[] } | { readonly status: number };

async function readCatalog(catalogUrl: string, request: IncomingMessage): Promise<CatalogAnswer> {
  try {
    const answer = await fetch(new URL("/items", catalogUrl), {
      headers: headersToForward(request),
      signal: AbortSignal.timeout(20_000),
    });
    if (answer.ok) return { items: (await answer.json()) as Item[] };
    await answer.body?.cancel();
    return { status: answer.status };
  } catch (error) {
    process.stderr.write(`catalog: ${reasonOf(error)}\n`);
    return { status: 0 };
  }
}

function sendProducts(response: ServerResponse, catalog: CatalogAnswer, id: string | undefined): void {
  if (!("items" in catalog)) return sendJson(response, 502, { error: "the catalog does not answer" });
  if (id === undefined) return sendJson(response, 200, catalog.items);
  const item = catalog.items.find((each) => String(each.id) === id);
  sendJson(response, item === undefined ? 404 : 200, item ?? { error: `no product has the id ${id}` });
}

// A name in a cookie, nothing more: it shows a page that differs by user. Real logins are the authorization server's
// work.
async function login(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (!methodIs(request, response, "GET", "POST")) return;
  if (request.method !== "POST") return sendHtml(response, 200, loginPage());
  const name = new URLSearchParams((await readBody(request, 4096)) ?? "").get("name")?.trim() ?? "";
  if (name === "" || name.length > 64) {
    return sendHtml(response, 400, loginPage("Please give a name of at most 64 letters."));
  }
  redirect(response, `user=${encodeURIComponent(name)}`);
}

function redirect(response: ServerResponse, cookie?: string): void {
  response.writeHead(303, {
    location: "/productpage",
    ...(cookie === undefined ? {} : { "set-cookie": `${cookie}; Path=/; HttpOnly; SameSite=Lax` }),
    "content-length": 0,
  });
  response.end();
}

function userOf(request: IncomingMessage): string | undefined {
  const value = /(?:^|;\s*)user=([^;]+)/.exec(request.headers.cookie ?? "")?.[1];
  if (value === undefined) return undefined;
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined; // a cookie that is not ours
  }
}

function sendHtml(response: ServerResponse, status: number, html: string): void {
  const bytes = Buffer.from(html);
  response.writeHead(status, {
    "content-type": "text/html; charset=utf-8",
    "content-length": bytes.length,
    "content-security-policy": "default-src 'none'; style-src 'self'; img-src 'self' http: https:; form-action 'self'",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
  });
  response.end(bytes);
}

function sendStatic(response: ServerResponse, file: StaticFile): void {
  response.writeHead(200, {
    "content-type": file.contentType,
    "content-length": file.bytes.length,
    "cache-control": "max-age=300",
  });
  response.end(file.bytes);
}
