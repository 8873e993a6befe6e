// A filter that stands in the list switched off (HttpFilter.disabled) and works where the route, virtual host or route
// configuration names it in typed_per_filter_config. Several sign-ins of one gateway stand beside each other so.
import type { HttpFilter, HttpStream } from "../../http/filter.ts";

/** Where compiled per-filter configurations keep that the filter was named; no filter's name has a NUL. */
export function enablementKey(filterName: string): string {
  return `enabled\0${filterName}`;
}

/** The filter, asked only about requests whose first route names it: what happens to the route later changes nothing, as in Envoy. */
export function whereRoutesEnable(filter: HttpFilter, name: string): HttpFilter {
  const key = enablementKey(name);
  const enabled = new WeakSet<HttpStream>();
  return {
    name,
    onRequestHead(stream, endStream) {
      if (stream.routeMatch?.route.perFilterConfig.get(key) !== true) return "continue";
      enabled.add(stream);
      return filter.onRequestHead?.(stream, endStream) ?? "continue";
    },
    ...(filter.onRequestData !== undefined && {
      onRequestData: (stream, chunk, endStream) => {
        if (enabled.has(stream)) filter.onRequestData!(stream, chunk, endStream);
      },
    }),
    ...(filter.onRequestTrailers !== undefined && {
      onRequestTrailers: (stream, trailers) => {
        if (enabled.has(stream)) filter.onRequestTrailers!(stream, trailers);
      },
    }),
    ...(filter.onRequestWaiting !== undefined && {
      onRequestWaiting: (stream, endStream) => {
        if (enabled.has(stream)) filter.onRequestWaiting!(stream, endStream);
      },
    }),
    ...(filter.onResponseHead !== undefined && {
      onResponseHead: (stream, response, endStream) => {
        if (enabled.has(stream)) filter.onResponseHead!(stream, response, endStream);
      },
    }),
    ...(filter.onResponseData !== undefined && {
      onResponseData: (stream, chunk, endStream) => {
        if (enabled.has(stream)) filter.onResponseData!(stream, chunk, endStream);
      },
    }),
    ...(filter.onDownstreamDrained !== undefined && {
      onDownstreamDrained: (stream) => {
        if (enabled.has(stream)) filter.onDownstreamDrained!(stream);
      },
    }),
    ...(filter.onComplete !== undefined && {
      onComplete: (stream) => {
        if (enabled.has(stream)) filter.onComplete!(stream);
      },
    }),
  };
}
