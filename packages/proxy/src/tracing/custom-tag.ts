// Types of tracing that routes hold: what is added to a span, and shares of requests.
import type { RedactedNames } from "../format/redacted-names.ts";
import type { StreamInfo } from "../http/stream-info.ts";

export interface CustomTag {
  readonly name: string;
  /** Undefined or empty: there is no such tag. */
  readonly value: (info: StreamInfo, redactedNames: RedactedNames) => string | undefined;
  readonly type: "text" | "int" | "double" | "bool";
}

/** Each in [0, 10000], as ids are drawn from. */
export interface SamplingShares {
  readonly client: number;
  readonly random: number;
  readonly overall: number;
}
