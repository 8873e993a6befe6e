// The terminal HTTP filter: it chooses a host, sends the request upstream, tries again by the route's retry policy and
// carries the answer back (Envoy: extensions.filters.http.router.v3.Router).
import type { FilterStatus, HttpFilter, HttpStream } from "../../../http/filter.ts";
import type { HeaderMap } from "../../../http/header-map.ts";
import { HeaderMap as Headers } from "../../../http/header-map.ts";
import type { DirectResponseAction, RedirectAction } from "../../../route/route-table.ts";
import type { RouterFilterConfig } from "./router-config.ts";
import { RouterRequest } from "./router-request.ts";

const routerFilterName = "envoy.filters.http.router";

export function createRouterFilter(config: RouterFilterConfig): HttpFilter {
  return new RouterFilter(config);
}

class RouterFilter implements HttpFilter {
  readonly name = routerFilterName;
  readonly #config: RouterFilterConfig;

  constructor(config: RouterFilterConfig) {
    this.#config = config;
  }

  onRequestHead(stream: HttpStream, endStream: boolean): FilterStatus {
    const action = stream.routeMatch?.action;
    this.#config.stats.requests.increment();
    if (action === undefined) {
      this.#config.stats.noRoute.increment();
      stream.sendLocalReply({ status: 404, body: "", flag: "NR", details: "route_not_found" });
    } else if (action.type === "forward") {
      const request = new RouterRequest(stream, action, this.#config, endStream);
      stream.terminalState = request;
      request.start();
    } else {
      this.#config.stats.directResponses.increment();
      answer(stream, action);
    }
    return "stop";
  }

  onRequestData(stream: HttpStream, chunk: Buffer, endStream: boolean): void {
    (stream.terminalState as RouterRequest | undefined)?.onRequestData(chunk, endStream);
  }

  onRequestTrailers(stream: HttpStream, trailers: HeaderMap): void {
    (stream.terminalState as RouterRequest | undefined)?.onRequestTrailers(trailers);
  }

  onDownstreamDrained(stream: HttpStream): void {
    (stream.terminalState as RouterRequest | undefined)?.onDownstreamDrained();
  }

  onComplete(stream: HttpStream): void {
    (stream.terminalState as RouterRequest | undefined)?.abandon();
  }
}

/** Routes that answer by themselves (RouteAction redirect, direct_response). */
function answer(stream: HttpStream, action: RedirectAction | DirectResponseAction): void {
  const headers = new Headers();
  let body = noBody;
  if (action.type === "redirect") headers.append("location", action.location(stream.request));
  else body = Buffer.from(action.body.buffer, action.body.byteOffset, action.body.byteLength);
  const { status } = action;
  action.finalizeResponse({ status, headers }, stream.info);
  stream.sendLocalReply({ status, headers, body, details: "direct_response" });
}

const noBody: Buffer = Buffer.alloc(0);
