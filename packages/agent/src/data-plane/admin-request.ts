// One request to Envoy's admin interface: for its readiness, its metrics, and for draining it.
import { adminPort } from "../bootstrap/bootstrap.ts";

// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start
// quickly").
const { request } = process.getBuiltinModule("node:http");

/**
 * Below the three seconds that a platform waits for the agent's own answer (Istio: the readiness probe's
 * `timeoutSeconds`), and above the second after which a kernel knocks again that found the port crowded.
 */
const adminTimeoutMs = 2_500;

/** Rejects if the proxy does not answer. `address` is the pod's. */
export async function adminRequest(
  address: string,
  method: "GET" | "POST",
  path: string,
): Promise<{ readonly status: number; readonly body: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>();
  const options = { host: address, port: adminPort, method, path, agent: false, timeout: adminTimeoutMs };
  const sent = request(options, (response) => {
    let body = "";
    response.setEncoding("utf8").on("data", (text: string) => (body += text));
    response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
    response.on("error", reject);
  });
  sent.on("timeout", () => sent.destroy(new Error("no answer")));
  sent.on("error", reject);
  sent.end();
  return promise;
}
