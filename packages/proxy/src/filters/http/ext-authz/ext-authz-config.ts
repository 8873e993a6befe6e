// The filter's configuration as the request path reads it (extensions.filters.http.ext_authz.v3.ExtAuthz).
import type { Metadata } from "../../../fields/matchers/metadata-matcher.ts";
import type { CheckOutcomeListener, CheckRequest } from "./check-request.ts";
import type { AsyncCall } from "../../../upstream/async-call.ts";

/** Whether metadata of earlier filters say that a request is to be asked about. */
export type MetadataTest = (metadata: Metadata | undefined) => boolean;

/** An authorizer, and how it is asked. The outcome comes in a later turn. */
export interface Authorizer {
  check(request: CheckRequest, onOutcome: CheckOutcomeListener): AsyncCall;
}

export interface BodySettings {
  readonly maxBytes: number;
  readonly allowsPartial: boolean;
  readonly packAsBytes: boolean;
}

export interface ExtAuthzConfig {
  readonly authorizer: Authorizer;
  readonly failureModeAllow: boolean;
  readonly failureModeHeader: boolean;
  /** Undefined = the body is not looked at. */
  readonly body: BodySettings | undefined;
  readonly clearsRouteCache: boolean;
  readonly statusOnError: number;
  /** In [0, 1]. */
  readonly enabledShare: number;
  readonly enabledBy: MetadataTest | undefined;
  readonly deniesWhenDisabled: boolean;
  /** Headers that the authorizer gets, by lower-case name. */
  readonly showsHeader: (name: string) => boolean;
  readonly metadataNamespaces: readonly string[];
  readonly takesMetadata: boolean;
  /** Of a denial; 0 = no limit. */
  readonly maxDeniedBodyBytes: number;
}

/** ExtAuthzPerRoute. */
export interface ExtAuthzRouteConfig {
  readonly isDisabled: boolean;
  readonly contextExtensions: Readonly<Record<string, string>>;
  readonly ignoresBody: boolean;
  readonly body: BodySettings | undefined;
}
