// envoy.filters.listener.http_inspector: does a plain connection speak HTTP, and which version. Its finding stands
// where the ALPN protocols of a TLS connection do, so that filter chains can ask for it.
import { HttpInspectorSchema } from "@tulle/xds/envoy/extensions/filters/listener/http_inspector/v3/http_inspector_pb";
import { checkedMessage } from "../../../fields/checked-message.ts";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import { tokenCodes } from "../../../codec/http1/header-names.ts";
import { inspectorCounters } from "../inspector-counters.ts";
import type { ListenerFilterRegistration } from "../listener-filter.ts";

/** Envoy: MAX_INSPECT_SIZE. A request line that has not ended by then ends the connection. */
const maxRequestLineBytes = 65_536;
const maxJudgedBytes = 1024;
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
const lineFeed = 10;
const carriageReturn = 13;
const space = 32;
const dot = 46;
const zero = 48;
const nine = 57;
const versionName = "HTTP/";

export type HttpFinding = "http/1.0" | "http/1.1" | "h2c";

/** What a method may consist of (RFC 9110 §5.6.2), a target of any visible characters, and a version (RFC 9112 §3). */
const requestLine = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+ +[\x21-\x7e\x80-\xff]+ +HTTP\/([0-9])\.([0-9])\r?$/;

/**
 * Where the beginning of a request line ends:
 * - `method`, `target`, `version`: within that part; `gap…`: within the blanks before it.
 * - `end`: behind a CR, before its LF.
 */
type Place = "method" | "gapBeforeTarget" | "target" | "gapBeforeVersion" | "version" | "end";

/** Reads the first line of one client as it comes; each byte is looked at once, and once more as part of the line. */
export class RequestLineReader {
  #place: Place = "method";
  /** So many bytes have been looked at. */
  #read = 0;
  /** Of the version. */
  #versionLength = 0;

  /**
   * `incomplete` while it may become a request line, `other` once it cannot. `data`: all that has come, from the first
   * byte.
   */
  read(data: Buffer): HttpFinding | "incomplete" | "other" {
    const compared = Math.min(data.length, preface.length);
    if (data.compare(preface, 0, compared, 0, compared) === 0) return compared < preface.length ? "incomplete" : "h2c";
    const end = data.indexOf(lineFeed, this.#read);
    if (end < 0) {
      const judged = Math.min(data.length, maxJudgedBytes);
      for (let at = this.#read; at < judged; at += 1) {
        if (!this.#mayGoOnWith(data[at]!, at)) return "other";
      }
      this.#read = data.length;
      return "incomplete";
    }
    const match = requestLine.exec(data.toString("latin1", 0, end));
    if (match === null) return "other";
    return match[1] === "1" && match[2] === "1" ? "http/1.1" : "http/1.0";
  }

  #mayGoOnWith(code: number, at: number): boolean {
    switch (this.#place) {
      case "method":
        if (code === space && at > 0) return this.#moveTo("gapBeforeTarget");
        return tokenCodes[code]! > 0;
      case "gapBeforeTarget":
        return code === space || (isVisible(code) && this.#moveTo("target"));
      case "target":
        return isVisible(code) || (code === space && this.#moveTo("gapBeforeVersion"));
      case "gapBeforeVersion":
        if (code === space) return true;
        return this.#moveTo("version") && this.#mayGoOnWith(code, at);
      case "version":
        if (code === carriageReturn) return this.#moveTo("end");
        this.#versionLength += 1;
        return this.#versionLength > versionName.length
          ? (code >= zero && code <= nine) || code === dot
          : code === versionName.charCodeAt(this.#versionLength - 1);
      case "end":
        return false;
    }
  }

  #moveTo(place: Place): true {
    this.#place = place;
    return true;
  }
}

function isVisible(code: number): boolean {
  return code > space && code !== 0x7f && (code < 0x7f || code >= 0x80);
}

const httpInspectorMessage = checkedMessage(HttpInspectorSchema, { [HttpInspectorSchema.typeName]: "" });

export const httpInspectorRegistration: ListenerFilterRegistration = {
  types: [HttpInspectorSchema.typeName],
  compile(config, build) {
    if (decodeTypedConfig(httpInspectorMessage, config, build.place, build.problems) === undefined) return undefined;
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
      onAccept: undefined,
      inspector: (connection) => {
        const line = new RequestLineReader();
        return (data) => {
          const finding = line.read(data);
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
        };
      },
    };
  },
};
