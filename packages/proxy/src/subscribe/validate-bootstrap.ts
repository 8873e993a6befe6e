// Checks a bootstrap and all its static resources without opening anything (`--mode validate`).
import type { Bootstrap } from "@tulle/xds/envoy/config/bootstrap/v3/bootstrap_pb";
import { compileBootstrap } from "../bootstrap/compile-bootstrap.ts";
import { BootstrapError } from "../bootstrap/read-bootstrap.ts";
import { detachedScope } from "../compile/compile-scope.ts";
import { problemText } from "../compile/problems.ts";
import { compileStaticResources } from "./load-static-resources.ts";

/** @throws {BootstrapError} with every problem, one a line. */
export function validateBootstrap(bootstrap: Bootstrap): void {
  const result = compileBootstrap(bootstrap);
  if (!result.ok) throw new BootstrapError(result.problems.map(problemText));
  const { problems } = compileStaticResources(result.value, detachedScope());
  if (problems.length > 0) throw new BootstrapError(problems);
}
