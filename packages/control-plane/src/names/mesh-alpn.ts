// What clients of the mesh offer by ALPN: the proxies in their upstream TLS, and the control plane where it asks a
// Service itself.

/**
 * What a mesh client offers; the server picks `http/1.1` or `h2`, and tells by the rest that the caller is of the mesh.
 */
export const meshHttp1Alpn: readonly string[] = ["istio-http/1.1", "istio", "http/1.1"];
export const meshHttp2Alpn: readonly string[] = ["istio-h2", "istio", "h2"];
/** HTTP whose version nothing is agreed on: the server looks at the first bytes. */
export const meshHttpAlpn: readonly string[] = ["istio-http/1.1", "istio-h2", "istio"];
/** Without `istio-peer-exchange`, which would promise Istio's metadata exchange at the beginning of the bytes. */
export const meshTcpAlpn: readonly string[] = ["istio"];
