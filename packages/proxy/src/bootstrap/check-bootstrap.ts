// A bootstrap and all that is static in it, looked at in one pass: whoever wrote it sees everything that is wrong at
// once.
import type { Bootstrap } from "@tulle/xds/envoy/config/bootstrap/v3/bootstrap_pb";
import { compileBootstrap, type ProxyBootstrap } from "./compile-bootstrap.ts";
import { type CompileScope, detachedScope } from "../fields/compile-scope.ts";
import { Place, Problems, problemText } from "../fields/problems.ts";
import { compileStatSinks } from "../stat-sinks/compile-stat-sinks.ts";
import type { StatSinkSettings } from "../stat-sinks/open-telemetry-sink.ts";
import { compileStaticResources, type StaticResources } from "../apply/load-static-resources.ts";

export interface CheckedBootstrap {
  readonly bootstrap: ProxyBootstrap;
  readonly scope: CompileScope;
  readonly resources: StaticResources;
  readonly statSinks: readonly StatSinkSettings[];
  /** One a line, with places; none = it can be used. */
  readonly problems: readonly string[];
  /** What is ignored, likewise. */
  readonly warnings: readonly string[];
}

/** `scopeOf` is asked once, with what the bootstrap says of the process; without it nothing is opened. */
export function checkBootstrap(
  message: Bootstrap,
  scopeOf: (bootstrap: ProxyBootstrap) => CompileScope = (bootstrap) =>
    detachedScope({ staticClusterNames: new Set(bootstrap.clusters.map(({ name }) => name)) }),
): CheckedBootstrap {
  const { bootstrap, problems: own } = compileBootstrap(message);
  const scope = scopeOf(bootstrap);
  const resources = compileStaticResources(bootstrap, scope);
  const ofSinks = new Problems();
  const statSinks = compileStatSinks(message.statsSinks, scope, Place.root, ofSinks);
  const texts = (severity: "error" | "warning"): string[] =>
    [...own, ...ofSinks.list].filter((problem) => problem.severity === severity).map(problemText);
  return {
    bootstrap,
    scope,
    resources,
    statSinks,
    problems: unique([...texts("error"), ...resources.problems]),
    warnings: unique([...texts("warning"), ...resources.warnings]),
  };
}

function unique(lines: readonly string[]): readonly string[] {
  return [...new Set(lines)];
}
