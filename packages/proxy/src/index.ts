// The public face of the proxy package.
export { HeaderMap } from "./http/header-map.ts";
export { StreamInfo } from "./http/stream-info.ts";
