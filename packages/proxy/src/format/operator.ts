// What every operator of the substitution format compiles to: a function on one request. The arguments are passed apart
// from StreamInfo because header changes are formatted while the response is not yet the one that went to the client.
import type { RequestHead, ResponseHead } from "../http/message.ts";
import type { StreamInfo } from "../http/stream-info.ts";

/** Undefined is a missing value: `-` in text, nothing in a header, null in JSON. */
export type FormatValue = (
  info: StreamInfo,
  request: RequestHead | undefined,
  response: ResponseHead | undefined,
) => string | undefined;

export interface CompiledOperator {
  readonly value: FormatValue;
  /** JSON formats write it as a number. */
  readonly isNumber: boolean;
  /** Where the value may be of any type: its JSON. */
  readonly json?: FormatValue;
  /** What of it has no value here. */
  readonly warning?: string;
}

/** What operators read that does not belong to a request. */
export interface FormatEnvironment {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly hostname: string;
  /**
   * Parameters of queries whose values no operator shows, as none shows a header of credentials; names in lower case.
   * REQ_WITHOUT_QUERY then leaves out these alone, not the whole query.
   */
  readonly redactedParameters?: ReadonlySet<string>;
  /** REQ_WITHOUT_QUERY leaves the whole query out all the same: its author asks for that. */
  readonly withoutWholeQuery?: true;
}

/** An operator's compile function: `argument` stands in parentheses after its name, undefined without them. */
export type OperatorCompiler = (
  argument: string | undefined,
  environment: FormatEnvironment,
) => CompiledOperator | { readonly error: string };
