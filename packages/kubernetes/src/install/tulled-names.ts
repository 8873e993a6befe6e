// The control plane's names and labels as manifests write them, where the revision is a value: those of names.ts.
import { controlPlaneName, defaultRevision, revisionLabel } from "../names.ts";
import { partOf } from "./installed-labels.ts";
import { choose, type Expression, isEqual, joined, value } from "./template.ts";

export const revision = value("tulled.revision");

/** `tulled`, or `tulled-R`. */
export function ofRevision(name: string): Expression {
  return choose(isEqual("tulled.revision", defaultRevision), name, joined(`${name}-`, revision));
}

export const tulledName = ofRevision(controlPlaneName(defaultRevision));

export const tulledSelector = { app: "tulled", [revisionLabel]: revision } as const;

export const tulledLabels = { ...tulledSelector, istio: "pilot", ...partOf("tulled") } as const;
