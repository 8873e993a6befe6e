// One HTTP filter alone, for its tests: compiled from Envoy's JSON, asked about one request head.
import { type DescMessage, toBinary } from "@bufbuild/protobuf";
import { type CompileScope, detachedScope } from "../fields/compile-scope.ts";
import { Place, Problems, problemText } from "../fields/problems.ts";
import { typeUrlOf } from "../fields/typed-config.ts";
import { DataPath } from "../worker/data-path.ts";
import { filterOfType } from "../filters/http/table.ts";
import type { FilterStatus, HttpFilter, HttpStream, LocalReply } from "../http/filter.ts";
import type { RequestHead } from "../http/message.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import { type RequestProperties, fromConfiguration, requestHead, streamInfo } from "./from-configuration.ts";
import { ManualClock } from "./manual-clock.ts";

export interface CompiledFilter {
  readonly filter: HttpFilter | undefined;
  /** Errors and warnings in the order in which they were found. */
  readonly problems: readonly string[];
}

export function compileFilter(
  schema: DescMessage,
  json: object,
  scope: CompileScope = detachedScope(),
): CompiledFilter {
  const message = fromConfiguration(schema, json);
  const typeUrl = typeUrlOf(schema);
  const problems = new Problems();
  const filter = filterOfType(typeUrl)!.compile(
    { typeUrl, form: "binary", bytes: toBinary(schema, message) },
    {
      name: "probed",
      scope,
      isInbound: true,
      statPrefix: "test",
      clusterNames: new Set(),
      secretSlots: new Set(),
      place: Place.root,
      problems,
    },
  );
  return { filter, problems: problems.list.map(problemText) };
}

export interface Asked {
  readonly status: FilterStatus;
  readonly reply: LocalReply | undefined;
  readonly request: RequestHead;
  readonly info: StreamInfo;
}

/** `clock` stands where it is put. */
export function askFilter(filter: HttpFilter, properties: RequestProperties, clock = new ManualClock()): Asked {
  const request = requestHead(properties);
  const info = streamInfo(request);
  const scope = detachedScope();
  const dataPath = new DataPath({ logging: scope.logging, clock });
  let reply: LocalReply | undefined;
  const stream: Partial<HttpStream> = {
    info,
    request,
    routeMatch: undefined,
    dataPath,
    slots: undefined,
    sendLocalReply: (given) => (reply = given),
    clearRouteCache: () => undefined,
  };
  const status = filter.onRequestHead?.(stream as HttpStream, true) ?? "continue";
  return { status, reply, request, info };
}
