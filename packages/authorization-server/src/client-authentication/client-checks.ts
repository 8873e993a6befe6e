// Every check that leads from a request to a client that may be believed, in order.
import type { Check } from "../protocol/checks.ts";
import type { ServerContext } from "../server-context.ts";
import { readBasic } from "./checks/read-basic.ts";
import { requireClientIdentifier } from "./checks/require-client-identifier.ts";
import { requireMatchingClientId } from "./checks/require-matching-client-id.ts";
import { requireOneMethod } from "./checks/require-one-method.ts";
import { requireRegisteredClient } from "./checks/require-registered-client.ts";
import { requireSecret } from "./checks/require-secret.ts";
import type { ClientDraft } from "./draft.ts";

export const clientChecks: ReadonlyArray<Check<ClientDraft, ServerContext>> = [
  requireOneMethod,
  readBasic,
  requireMatchingClientId,
  requireClientIdentifier,
  requireRegisteredClient,
  requireSecret,
];
