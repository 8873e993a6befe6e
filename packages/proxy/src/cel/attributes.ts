// Attributes of a request and its response by their path (docs: intro/arch_overview/advanced/attributes). Those that
// are not in the table are refused when the configuration comes, where Envoy finds out with each request that there are
// none.
import { requestHeader, responseHeader } from "../http/read-header.ts";
import type { RequestHead, ResponseHead } from "../http/message.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { CelValue } from "./cel-value.ts";

export interface CelSubject {
  readonly info: StreamInfo;
  readonly request: RequestHead | undefined;
  readonly response: ResponseHead | undefined;
}

export type ReadAttribute = (subject: CelSubject) => CelValue;

const ofRequest =
  (name: string): ReadAttribute =>
  ({ request }) =>
    request && requestHeader(name)(request);

function pathOf(request: RequestHead | undefined, part: "path" | "query"): string | undefined {
  if (request === undefined || request.path === "") return undefined;
  const at = request.path.indexOf("?");
  if (part === "path") return at < 0 ? request.path : request.path.slice(0, at);
  return at < 0 ? "" : request.path.slice(at + 1).replace(/#.*$/s, "");
}

/** No plain object: an expression may name `constructor` too. */
export const attributes: ReadonlyMap<string, ReadAttribute> = new Map<string, ReadAttribute>(
  Object.entries({
    "request.path": ofRequest(":path"),
    "request.url_path": ({ request }) => pathOf(request, "path"),
    "request.query": ({ request }) => pathOf(request, "query"),
    "request.host": ofRequest(":authority"),
    "request.scheme": ofRequest(":scheme"),
    "request.method": ofRequest(":method"),
    "request.referer": ofRequest("referer"),
    "request.useragent": ofRequest("user-agent"),
    "request.id": ofRequest("x-request-id"),
    "request.protocol": ({ request }) => request?.protocol,
    "request.headers": ({ request }) => request && { get: (name) => requestHeader(name)(request) },
    "response.code": ({ info }) => (info.responseCode === 0 ? undefined : info.responseCode),
    "response.code_details": ({ info }) => info.responseCodeDetails,
    "response.headers": ({ response }) => response && { get: (name) => responseHeader(name)(response) },
  }),
);
