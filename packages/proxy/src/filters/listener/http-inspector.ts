// envoy.filters.listener.http_inspector: does a plain connection speak HTTP, and which version. Its finding stands where
// the ALPN protocols of a TLS connection do, so that filter chains can ask for it.
import { HttpInspectorSchema } from "@tulle/xds/envoy/extensions/filters/listener/http_inspector/v3/http_inspector_pb";
import { decodeTypedConfig } from "../../compile/typed-config.ts";
import { inspectorCounters } from "./inspector-counters.ts";
import type { ListenerFilterRegistration } from "./listener-filter.ts";

/** Envoy: MAX_INSPECT_SIZE. A request line that has not ended by then ends the connection. */
const maxRequestLineBytes = 65_536;
const maxJudgedBytes = 1024;
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
const lineFeed = 10;

export type HttpFinding = "http/1.0" | "http/1.1" | "h2c";

/** What a method may consist of (RFC 9110 §5.6.2), a target of any visible characters, and a version (RFC 9112 §3). */
const requestLine = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+ +[\x21-\x7e\x80-\xff]+ +HTTP\/([0-9])\.([0-9])\r?$/;
/** A beginning of one. */
const partialRequestLine =
  /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?: +[\x21-\x7e\x80-\xff]*(?: +(?:H(?:T(?:T(?:P(?:\/[0-9.]*)?)?)?)?)?\r?)?)?$/;

/** `incomplete` while it may become a request line, `other` once it cannot. */
export function findHttp(data: Buffer): HttpFinding | "incomplete" | "other" {
  const compared = Math.min(data.length, preface.length);
  if (data.compare(preface, 0, compared, 0, compared) === 0) return compared < preface.length ? "incomplete" : "h2c";
  const end = data.indexOf(lineFeed);
  // Asked again with each piece that comes: what began as a request line goes on as one.
  if (end < 0) return partialRequestLine.test(data.toString("latin1", 0, maxJudgedBytes)) ? "incomplete" : "other";
  const match = requestLine.exec(data.toString("latin1", 0, end));
  if (match === null) return "other";
  return match[1] === "1" && match[2] === "1" ? "http/1.1" : "http/1.0";
}

export const httpInspectorRegistration: ListenerFilterRegistration = {
  types: [HttpInspectorSchema.typeName],
  compile(config, build) {
    if (decodeTypedConfig(HttpInspectorSchema, config, build.place, build.problems) === undefined) return undefined;
    const stats = inspectorCounters(build.metrics, "http_inspector", [
      "http10_found",
      "http11_found",
      "http2_found",
      "http_not_found",
      "read_error",
    ]);
    const found = { "http/1.0": stats.http10_found, "http/1.1": stats.http11_found, h2c: stats.http2_found };
    return {
      name: build.name,
      isSkipped: (connection) => connection.transportProtocol !== "raw_buffer",
      inspect(data, connection) {
        const finding = findHttp(data);
        if (finding === "incomplete") {
          if (data.length < maxRequestLineBytes) return "wait";
          stats.read_error.increment();
          return "close";
        }
        if (finding === "other") {
          stats.http_not_found.increment();
        } else {
          found[finding].increment();
          connection.applicationProtocols = [finding];
        }
        return "continue";
      },
    };
  },
};
