// Every check of grant_type, in order: the first two need no client, the last one does.
import type { Check } from "../protocol/checks.ts";
import type { GrantTypeDraft, RegisteredGrantTypeDraft } from "./draft.ts";
import { requireGrantType } from "./grant-type-checks/require-grant-type.ts";
import { requireKnownGrantType } from "./grant-type-checks/require-known-grant-type.ts";
import { requireRegisteredGrantType } from "./grant-type-checks/require-registered-grant-type.ts";

export const grantTypeChecks: ReadonlyArray<Check<GrantTypeDraft, undefined>> = [
  requireGrantType,
  requireKnownGrantType,
];

export const registeredGrantTypeChecks: ReadonlyArray<Check<RegisteredGrantTypeDraft, undefined>> = [
  requireRegisteredGrantType,
];
