/**
 * The annotation that makes an AuthorizationPolicy a trial: Istio refuses values that are no truth values, and every
 * other kind.
 */
import type { Report } from "../schema/schema.ts";
import { quote } from "../schema/formats.ts";
import { dryRunAnnotations } from "../rules/policy-scope.ts";

interface Annotated {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
}

/** Go's spellings (strconv.ParseBool). */
const truthValues: ReadonlySet<string> = new Set("1 t T true TRUE True 0 f F false FALSE False".split(" "));

export function dryRunIsClear(
  { metadata, spec }: Annotated & { readonly spec: { readonly action?: string } },
  report: Report,
): void {
  const { action = "ALLOW" } = spec;
  for (const name of dryRunAnnotations) {
    const value = metadata.annotations?.[name];
    if (value === undefined) continue;
    const path = ["metadata", "annotations", name];
    if (!truthValues.has(value)) report({ path, message: `${quote(value)} is neither true nor false` });
    else if (name.startsWith("istio.io/") && action !== "ALLOW" && action !== "DENY") {
      report({ path, message: `only policies that allow or deny can be tried out, and the action is ${action}` });
    }
  }
}

export function noDryRun({ metadata }: Annotated, report: Report): void {
  for (const name of dryRunAnnotations) {
    if (metadata.annotations?.[name] === undefined) continue;
    report({
      path: ["metadata", "annotations", name],
      message: "only an AuthorizationPolicy can be tried out",
      suggestion: "Remove the annotation.",
    });
  }
}
