// Conditions of a status, as Kubernetes has them on each kind.
import { enumeration, list, object, optional, required, string } from "../schema/schema.ts";

/** `counts`: the type of the one that is read. */
export const conditions = (counts: string) =>
  optional(
    list(
      object(
        {
          type: required(string(), `Condition; \`${counts}\` is the one that counts.`),
          status: required(enumeration(["True", "False", "Unknown"]), "Whether it holds."),
          reason: optional(string(), "Reason in one word."),
          message: optional(string(), "Reason in a sentence."),
          lastTransitionTime: optional(string(), "Since when (RFC 3339)."),
        },
        { unread: ["lastProbeTime", "observedGeneration"] },
      ),
    ),
    "Conditions.",
  );
