// What an authorizer is told of a request: its head, as far as it may see it, and what has been kept of the body
// (Envoy: `CheckRequestUtils::createHttpCheck`).
import type { DataPath } from "../../../worker/data-path.ts";
import type { HttpStream } from "../../../http/filter.ts";
import type { RequestHead } from "../../../http/message.ts";
import type { StreamInfo } from "../../../http/stream-info.ts";
import type { AuthorizationOutcome } from "./authorization-outcome.ts";
import type { BodySettings } from "./ext-authz-config.ts";

export interface CheckRequest {
  readonly info: StreamInfo;
  readonly dataPath: DataPath;
  readonly request: RequestHead;
  /** Names in lower case, pseudo headers among them; values of repeated headers joined by commas. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: CheckedBody | undefined;
  readonly contextExtensions: Readonly<Record<string, string>>;
  /** Dynamic metadata by namespace. */
  readonly metadata: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

export interface CheckedBody {
  readonly bytes: Buffer;
  readonly packAsBytes: boolean;
}

export type CheckOutcomeListener = (outcome: AuthorizationOutcome) => void;

const partialBodyHeader = "x-envoy-auth-partial-body";

/** Of a request whose body is looked at and has begun to come, with its first bytes. */
export function checkedBody(stream: HttpStream, settings: BodySettings): CheckedBody {
  const bytes = Buffer.concat(stream.waitingBody).subarray(0, settings.maxBytes);
  return { bytes, packAsBytes: settings.packAsBytes };
}

export function shownHeaders(
  request: RequestHead,
  shows: (name: string) => boolean,
  isPartialBody: boolean | undefined,
): ReadonlyMap<string, string> {
  const shown = new Map<string, string>();
  const show = (name: string, value: string): void => {
    if (value === "" && name.startsWith(":")) return;
    if (!shows(name)) return;
    const before = shown.get(name);
    shown.set(name, before === undefined ? value : `${before},${value}`);
  };
  show(":authority", request.authority);
  show(":path", request.path);
  show(":method", request.method);
  show(":scheme", request.scheme);
  const { entries } = request.headers;
  for (let index = 0; index < entries.length; index += 2) show(entries[index]!, entries[index + 1]!);
  if (isPartialBody !== undefined) shown.set(partialBodyHeader, String(isPartialBody));
  return shown;
}
