// Every check of the form of a client's POST, in order, before anybody is recognized.
import type { Check } from "../protocol/checks.ts";
import type { ServerContext } from "../server-context.ts";
import { requireReadableParameters } from "../authorize/checks/require-readable-parameters.ts";
import { requireSingleParameters } from "../authorize/checks/require-single-parameters.ts";
import { refuseQuery } from "./checks/refuse-query.ts";
import { requireForm } from "./checks/require-form.ts";
import { requirePost } from "./checks/require-post.ts";
import type { ClientDraft } from "./draft.ts";

export const messageChecks: ReadonlyArray<Check<ClientDraft, ServerContext>> = [
  requirePost,
  requireForm,
  refuseQuery,
  requireSingleParameters,
  requireReadableParameters,
];
