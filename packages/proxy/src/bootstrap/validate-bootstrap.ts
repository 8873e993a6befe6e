// Checks a bootstrap and all its static resources without opening anything (`--mode validate`).
import type { Bootstrap } from "@tulle/xds/envoy/config/bootstrap/v3/bootstrap_pb";
import { BootstrapError } from "./read-bootstrap.ts";
import { checkBootstrap } from "./check-bootstrap.ts";

/** What is ignored, one a line. @throws {BootstrapError} with every problem, one a line. */
export function validateBootstrap(bootstrap: Bootstrap): readonly string[] {
  const { problems, warnings } = checkBootstrap(bootstrap);
  if (problems.length > 0) throw new BootstrapError(problems);
  return warnings;
}
