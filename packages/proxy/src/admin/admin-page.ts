// What an admin path gets and gives. Pages are functions on it, so that tests ask them without a socket.
import type { IncomingHttpHeaders } from "node:http";
import type { Logging, MetricRegistry } from "@tulle/telemetry";
import type { AccessLogFiles } from "../access-log/access-log-file.ts";
import type { ListenerHost } from "../listener/listener-host.ts";
import type { ConfigRecords } from "../runtime/config-records.ts";
import type { RuntimeOwner } from "../runtime/runtime-owner.ts";
import type { ServerState } from "./server-state.ts";

/** Everything that the admin interface shows or changes. */
export interface AdminTargets {
  readonly state: ServerState;
  readonly logging: Logging;
  readonly metrics: MetricRegistry;
  readonly owner: RuntimeOwner;
  readonly records: ConfigRecords;
  readonly listenerHost: ListenerHost;
  readonly accessLogs: AccessLogFiles;
  readonly drainListeners: () => void;
  readonly quit: () => void;
}

export interface AdminResponse {
  readonly status: number;
  readonly contentType: string;
  /** Pieces are written as they come, and requests are served between them. */
  readonly body: string | Iterable<string>;
  /** Runs once the response has left. */
  readonly afterwards?: () => void;
}

export type AdminHandler = (
  query: URLSearchParams,
  targets: AdminTargets,
  headers: IncomingHttpHeaders,
) => AdminResponse | Promise<AdminResponse>;

export interface AdminPage {
  readonly path: string;
  readonly help: string;
  /** Parameters as `/help` lists them, name and text. */
  readonly parameters?: readonly (readonly [string, string])[];
  /** Only POST may: GET gets 405. */
  readonly changesSomething?: boolean;
  readonly handle: AdminHandler;
}

const plainType = "text/plain; charset=UTF-8";

export function text(body: string, status = 200): AdminResponse {
  return { status, contentType: plainType, body };
}

/** JSON as Envoy prints it: one space a level, a line feed at the end. */
export function json(value: unknown): AdminResponse {
  return { status: 200, contentType: "application/json", body: `${JSON.stringify(value, undefined, 1)}\n` };
}

/** A parameter that is there and not empty. */
export function parameter(query: URLSearchParams, name: string): string | undefined {
  return query.get(name) || undefined;
}
