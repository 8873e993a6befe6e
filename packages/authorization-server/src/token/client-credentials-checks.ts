// Every check of a client that acts for itself, in order.
import type { Check } from "../protocol/checks.ts";
import { requireConfidentialClient } from "./client-credentials-checks/require-confidential-client.ts";
import { requireOwnResource } from "./client-credentials-checks/require-own-resource.ts";
import { requireOwnScope } from "./client-credentials-checks/require-own-scope.ts";
import type { ClientCredentialsDraft, GrantContext } from "./draft.ts";

export const clientCredentialsChecks: ReadonlyArray<Check<ClientCredentialsDraft, GrantContext>> = [
  requireConfidentialClient,
  requireOwnScope,
  requireOwnResource,
];
