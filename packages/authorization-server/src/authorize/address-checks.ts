// Every check of an authorization request before anything may be redirected, in order. A refusal here is a page of our
// own (RFC 6749 §4.1.2.1).
import type { Check } from "../protocol/checks.ts";
import type { ServerContext } from "../server-context.ts";
import { refuseForeignDestination } from "./checks/refuse-foreign-destination.ts";
import { requireClientId } from "./checks/require-client-id.ts";
import { requireFormBody } from "./checks/require-form-body.ts";
import { requireKnownClient } from "./checks/require-known-client.ts";
import { requireReadableRedirectUri } from "./checks/require-readable-redirect-uri.ts";
import { requireRegisteredRedirectUri } from "./checks/require-registered-redirect-uri.ts";
import { requireShortRequest } from "./checks/require-short-request.ts";
import type { AddressDraft } from "./draft.ts";

export const addressChecks: ReadonlyArray<Check<AddressDraft, ServerContext>> = [
  refuseForeignDestination,
  requireFormBody,
  requireShortRequest,
  requireClientId,
  requireKnownClient,
  requireReadableRedirectUri,
  requireRegisteredRedirectUri,
];
