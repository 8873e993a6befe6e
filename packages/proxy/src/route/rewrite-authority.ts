// The one way in which an authority is replaced: by a route's host rewrite, or by the chosen host's name.
import type { RequestHead } from "../http/message.ts";

/**
 * Puts a new authority in place. Envoy keeps the client's in `x-envoy-original-host`; with `appendForwardedHost` it
 * goes to `x-forwarded-host` too.
 */
export function rewriteAuthority(request: RequestHead, authority: string, appendForwardedHost: boolean): void {
  if (appendForwardedHost && request.authority !== "") {
    const earlier = request.headers.getJoined("x-forwarded-host");
    // Envoy does not append a host that already stands last.
    if (earlier === undefined) request.headers.append("x-forwarded-host", request.authority);
    else if (!earlier.endsWith(request.authority)) {
      request.headers.set("x-forwarded-host", `${earlier},${request.authority}`);
    }
  }
  // A later try of the same request rewrites again; what the client asked for stays.
  if (request.authority !== "" && !request.headers.has("x-envoy-original-host")) {
    request.headers.append("x-envoy-original-host", request.authority);
  }
  request.authority = authority;
}
