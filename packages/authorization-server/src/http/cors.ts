// Which browser applications may call which endpoints from their own origin, always without cookies.
import type { ServerContext } from "../server-context.ts";
import { isRegisteredOrigin } from "../store/clients.ts";
import type { AnswerHeaders, EndpointRequest } from "./messages.ts";

const exposed = "WWW-Authenticate, Retry-After";

/** Headers that let the calling origin read the answer; none when it is not registered for a public client. */
export async function corsHeaders(server: ServerContext, request: EndpointRequest): Promise<AnswerHeaders> {
  const { origin } = request.headers;
  if (origin === undefined || origin === "null") return {};
  if (!(await server.database.read((reader) => isRegisteredOrigin(reader, origin)))) return { vary: "Origin" };
  return { "access-control-allow-origin": origin, "access-control-expose-headers": exposed, vary: "Origin" };
}

/** Of the answer to a browser's question before the request itself. */
export async function preflightHeaders(server: ServerContext, request: EndpointRequest): Promise<AnswerHeaders> {
  const headers = await corsHeaders(server, request);
  if (headers["access-control-allow-origin"] === undefined) return headers;
  return {
    ...headers,
    "access-control-allow-methods": "GET, POST",
    "access-control-allow-headers": "Authorization, Content-Type",
    "access-control-max-age": "600",
  };
}

/** The same for what everybody may read. */
export const openPreflightHeaders: AnswerHeaders = {
  "access-control-allow-origin": "*",
  "access-control-allow-methods": "GET, HEAD",
  "access-control-allow-headers": "*",
  "access-control-max-age": "600",
};
