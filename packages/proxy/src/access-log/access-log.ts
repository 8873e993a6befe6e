// What is told of every stream, or connection, once it has ended.
import type { StreamInfo } from "../http/stream-info.ts";

export interface AccessLog {
  /** Called once when the stream has ended; must not throw. */
  log(info: StreamInfo): void;
}
