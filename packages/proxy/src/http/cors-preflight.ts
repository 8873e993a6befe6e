// How a browser asks whether a page of another origin may call.
import type { RequestHead } from "./message.ts";

/** https://www.w3.org/TR/cors/#cross-origin-request-with-preflight: a browser sends no credentials with it. */
export function isCorsPreflight({ method, headers }: RequestHead): boolean {
  return (
    method === "OPTIONS" &&
    (headers.get("origin") ?? "") !== "" &&
    (headers.get("access-control-request-method") ?? "") !== ""
  );
}
