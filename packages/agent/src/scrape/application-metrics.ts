// Asks a pod's application for its metrics, as Istio's agent does: within a time and a size, whatever it answers.
import type { IncomingMessage } from "node:http";
import type { ApplicationPage } from "../settings.ts";

// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start
// quickly").
const { request } = process.getBuiltinModule("node:http");

/** Of one answer, in UTF-16 units; programs with thousands of series have a tenth of it. */
const maxCharacters = 4 * 1024 * 1024;
const defaultTimeoutMs = 5_000;
/** Of what Prometheus waits for all of the page: the proxy's own metrics have the rest. */
const shareOfTimeout = 0.7;

/** What of a scrape's head the application gets (Istio: the same three). */
const passedOn = ["accept", "user-agent", "x-prometheus-scrape-timeout-seconds"] as const;

export interface ApplicationAnswer {
  readonly isOpenMetrics: boolean;
  readonly text: string;
}

/** @throws {Error} with the reason in words, for a log */
export async function askApplication(
  { address, port, path }: ApplicationPage,
  scrape: IncomingMessage["headers"],
): Promise<ApplicationAnswer> {
  const headers = Object.fromEntries(
    passedOn.flatMap((name) => (scrape[name] === undefined ? [] : [[name, scrape[name]]])),
  );
  const { promise, resolve, reject } = Promise.withResolvers<ApplicationAnswer>();
  const timeoutMs = timeoutOf(scrape);
  const sent = request(
    { host: address, port, path, agent: false, headers: { ...headers, connection: "close" } },
    (response) => {
      const contentType = response.headers["content-type"] ?? "";
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
        if (text.length > maxCharacters) sent.destroy(new Error(`more than ${maxCharacters} characters`));
      });
      response.on("end", () => {
        if (response.statusCode !== 200) reject(new Error(`HTTP status ${response.statusCode}`));
        else resolve({ isOpenMetrics: contentType.startsWith("application/openmetrics-text"), text });
      });
      // Cut short, an answer ends without its "end".
      response.on("error", reject).on("close", () => reject(new Error("the answer was cut short")));
    },
  );
  // Of all of it: what comes byte by byte has no other end.
  const timer = setTimeout(() => sent.destroy(new Error(`no answer in ${timeoutMs} ms`)), timeoutMs);
  sent.on("error", reject);
  sent.end();
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    sent.destroy();
  }
}

function timeoutOf(scrape: IncomingMessage["headers"]): number {
  const told = Number(scrape["x-prometheus-scrape-timeout-seconds"]) * 1000;
  return told > 0 ? Math.min(told, 60_000) * shareOfTimeout : defaultTimeoutMs;
}
