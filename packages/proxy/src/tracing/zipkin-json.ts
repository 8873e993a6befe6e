// Zipkin's spans as JSON (HTTP_JSON).
import { spanText } from "./span-text.ts";
import { lastMarks, type ZipkinFormat, type ZipkinSpan } from "./zipkin-format.ts";

export class ZipkinJson implements ZipkinFormat {
  readonly contentType = "application/json";
  readonly #endpoint: string;
  #text = "";
  #tags = "";
  #annotations = "";
  #mark = "";

  constructor(serviceName: string) {
    this.#endpoint = JSON.stringify({ serviceName });
  }

  begin({ traceId, spanId, parentSpanId, name, kind, isShared, startUs, durationUs }: ZipkinSpan): void {
    const parent = parentSpanId === "" ? "" : `"parentId":"${parentSpanId}",`;
    const shared = isShared ? `"shared":true,` : "";
    this.#annotations = "";
    this.#mark = `{"timestamp":${startUs + durationUs},"value":"${lastMarks[kind]}"}`;
    this.#tags = "";
    this.#text =
      `{"traceId":"${traceId}","id":"${spanId}",${parent}${shared}"name":${JSON.stringify(spanText(name))},` +
      `"kind":"${kind.toUpperCase()}","timestamp":${startUs},"duration":${durationUs},"localEndpoint":${this.#endpoint},`;
  }

  tag(key: string, value: string): void {
    const separator = this.#tags === "" ? "" : ",";
    this.#tags += `${separator}${JSON.stringify(key)}:${JSON.stringify(spanText(value))}`;
  }

  annotation(timeUs: number, value: string): void {
    this.#annotations += `{"timestamp":${timeUs},"value":${JSON.stringify(spanText(value))}},`;
  }

  end(): Uint8Array {
    return Buffer.from(`${this.#text}"annotations":[${this.#annotations}${this.#mark}],"tags":{${this.#tags}}},`);
  }

  envelope(items: Buffer): Buffer {
    return Buffer.concat([Buffer.from("["), items.subarray(0, -1), Buffer.from("]")]);
  }
}
