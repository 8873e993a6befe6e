// What a supervisor tells whoever runs it; `tulle up` shows it to a person, and the supervisor's log keeps it.
import type { Finding } from "@tulle/config";
import type { Logger } from "@tulle/telemetry";
import type { PlanProblem } from "./pod/pod-plan.ts";
import type { ProcessEnd } from "./process/supervised-process.ts";

export type SupervisorEvent =
  /** Some pod's phase or readiness is different; `Supervisor.pods()` has them all. */
  | { readonly type: "pods" }
  /** All that the start still waits for while its pods are ready; empty when that has come. */
  | { readonly type: "waiting"; readonly awaited: readonly string[] }
  | { readonly type: "process-ended"; readonly name: string; readonly logFile: string; readonly end: ProcessEnd }
  | { readonly type: "finding"; readonly finding: Finding }
  /** There were errors in the manifests, and there are none any more. */
  | { readonly type: "repaired" }
  | { readonly type: "problem"; readonly subject: string; readonly problem: PlanProblem }
  | { readonly type: "trouble"; readonly message: string };

export function logEvent(log: Logger, event: SupervisorEvent): void {
  switch (event.type) {
    case "pods":
      return;
    case "waiting":
      if (event.awaited.length > 0) log.info("waiting", { for: event.awaited.join(", ") });
      return;
    case "process-ended": {
      const { description, restartInMs } = event.end;
      return log.warning("a process ended", { name: event.name, how: description, restartInMs });
    }
    case "finding": {
      const { code, severity, message, place } = event.finding;
      const where = place === undefined ? undefined : `${place.file}:${place.line}:${place.column}`;
      return log[severity](message, { code, where });
    }
    case "repaired":
      return log.info("the manifests have no errors any more");
    case "problem":
      return log.warning(event.problem.message, { subject: event.subject });
    case "trouble":
      return log.warning(event.message);
  }
}
