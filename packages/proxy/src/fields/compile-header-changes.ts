// Headers to add and remove, at one level of a route configuration (config.core.v3.HeaderValueOption).
import {
  type HeaderValueOption,
  HeaderValueOption_HeaderAppendAction as AppendAction,
} from "@tulle/xds/envoy/config/core/v3/base_pb";
import type { FormatEnvironment } from "../format/operator.ts";
import { type TextFormat, compileTextFormat } from "../format/substitution-format.ts";
import type { HeaderMap } from "../http/header-map.ts";
import { fieldValue, hasControlCharacter, utf8AsLatin1 } from "../http/header-value.ts";
import type { RequestHead, ResponseHead } from "../http/message.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { Place, Problems } from "./problems.ts";

/** Changes `headers`; the heads are what formats read. */
export type HeaderChange = (
  headers: HeaderMap,
  info: StreamInfo,
  request: RequestHead | undefined,
  response: ResponseHead | undefined,
) => void;

export interface HeaderChangeLists {
  readonly add: readonly HeaderValueOption[];
  readonly remove: readonly string[];
}

/** Name of the field in messages of problems: `request_headers_to_add` and `request_headers_to_remove`. */
export type HeaderChangeTarget = "request_headers" | "response_headers";

const headerName = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;

function isProtected(name: string): boolean {
  return name.startsWith(":") || name === "host";
}

/** Undefined when the level changes nothing. Removals come first, as in Envoy's HeaderParser. */
export function compileHeaderChanges(
  lists: HeaderChangeLists,
  target: HeaderChangeTarget,
  environment: FormatEnvironment,
  place: Place,
  problems: Problems,
): HeaderChange | undefined {
  // As most levels do.
  if (lists.add.length === 0 && lists.remove.length === 0) return undefined;
  const steps: HeaderChange[] = [];
  for (const [index, name] of lists.remove.entries()) {
    const lower = name.toLowerCase();
    const at = place.field(`${target}_to_remove`, index);
    if (isProtected(lower)) problems.error(at, ":-prefixed or host headers may not be removed");
    else if (!headerName.test(lower)) problems.error(at, `'${name}' is not a header name`);
    steps.push((headers) => headers.remove(lower));
  }
  for (const [index, option] of lists.add.entries()) {
    const step = compileAddition(option, environment, place.field(`${target}_to_add`, index), problems);
    if (step !== undefined) steps.push(step);
  }
  if (steps.length === 0) return undefined;
  if (steps.length === 1) return steps[0];
  return (headers, info, request, response) => {
    for (const step of steps) step(headers, info, request, response);
  };
}

function actionOf(option: HeaderValueOption, place: Place, problems: Problems): number {
  if (option.append === undefined) return option.appendAction;
  if (option.appendAction !== AppendAction.APPEND_IF_EXISTS_OR_ADD) {
    problems.error(place, "Both append and append_action are set and it's not allowed");
  }
  return option.append ? AppendAction.APPEND_IF_EXISTS_OR_ADD : AppendAction.OVERWRITE_IF_EXISTS_OR_ADD;
}

function compileAddition(
  option: HeaderValueOption,
  environment: FormatEnvironment,
  place: Place,
  problems: Problems,
): HeaderChange | undefined {
  const header = option.header;
  if (header === undefined || header.key === "") {
    problems.error(place.field("header").field("key"), "value length must be at least 1 characters");
    return undefined;
  }
  const name = header.key.toLowerCase();
  if (isProtected(name)) problems.error(place, ":-prefixed or host headers may not be modified");
  else if (!headerName.test(name)) problems.error(place.field("header"), `'${header.key}' is not a header name`);
  // Not TextDecoder: its latin1 is windows-1252.
  const raw = header.rawValue.length > 0 ? Buffer.from(header.rawValue).toString("latin1") : utf8AsLatin1(header.value);
  if (hasControlCharacter(raw)) {
    problems.error(place.field("header").field("value"), "control characters are not allowed");
  }
  const format = compileTextFormat(raw, "", environment, place.field("header").field("value"), problems);
  return additionStep(name, format, actionOf(option, place, problems), option.keepEmptyValue);
}

/** Formats read what peers sent, decoded query parameters and metadata among it. */
function write(headers: HeaderMap, name: string, text: string, isOverwrite: boolean, keepEmpty: boolean): void {
  if (text === "" && !keepEmpty) return;
  const value = fieldValue(text);
  if (isOverwrite) headers.set(name, value);
  else headers.append(name, value);
}

function additionStep(name: string, format: TextFormat, action: number, keepEmpty: boolean): HeaderChange {
  switch (action) {
    case AppendAction.ADD_IF_ABSENT:
      return (headers, info, request, response) => {
        if (!headers.has(name)) write(headers, name, format(info, request, response), false, keepEmpty);
      };
    case AppendAction.OVERWRITE_IF_EXISTS_OR_ADD:
      return (headers, info, request, response) =>
        write(headers, name, format(info, request, response), true, keepEmpty);
    case AppendAction.OVERWRITE_IF_EXISTS:
      return (headers, info, request, response) => {
        if (headers.has(name)) write(headers, name, format(info, request, response), true, keepEmpty);
      };
    default:
      return (headers, info, request, response) =>
        write(headers, name, format(info, request, response), false, keepEmpty);
  }
}
