// Configuration and requests as tests write them: Envoy's JSON, and a request in one line of properties.
import assert from "node:assert/strict";
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { messageFromJson } from "@tulle/xds/json";
import type { Compiled } from "../fields/problems.ts";
import { problemText } from "../fields/problems.ts";
import { HeaderMap } from "../http/header-map.ts";
import type { RequestHead } from "../http/message.ts";
import { StreamInfo } from "../http/stream-info.ts";

/** The message that the JSON says; a test with a mistake in it fails at once. */
export function fromConfiguration<D extends DescMessage>(schema: D, json: object): MessageShape<D> {
  const result = messageFromJson(schema, json);
  if (!result.ok) assert.fail(JSON.stringify(result.problems, undefined, 1));
  return result.message;
}

export interface RequestProperties {
  readonly method?: string;
  readonly scheme?: string;
  readonly authority?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export function requestHead(properties: RequestProperties = {}): RequestHead {
  return {
    method: properties.method ?? "GET",
    scheme: properties.scheme ?? "http",
    authority: properties.authority ?? "host",
    path: properties.path ?? "/",
    protocol: "HTTP/1.1",
    upgrade: undefined,
    headers: new HeaderMap(Object.entries(properties.headers ?? {}).flat()),
  };
}

export function streamInfo(request?: RequestHead): StreamInfo {
  const info = new StreamInfo(Date.UTC(2026, 10, 20, 12, 0, 0, 7), 0, "127.0.0.1:8080", "127.0.0.9:4711", "");
  info.request = request;
  return info;
}

/** Messages of what was refused, or the warnings of what was accepted, in the order in which they were found. */
export function problemsOf(result: Compiled<unknown>): readonly string[] {
  return (result.ok ? result.warnings : result.problems).map(problemText);
}

export function accepted<T>(result: Compiled<T>): T {
  if (!result.ok) assert.fail(problemsOf(result).join("\n"));
  return result.value;
}
