// The API client of an instance, and what a person is told when it does not answer.
import { ApiClient, ApiError } from "@tulle/config";
import { apiSocketPath, NotOwn, type Instance } from "@tulle/local/instance";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";
import { isOnCluster } from "./on-cluster.ts";

/**
 * By the Unix socket of the instance's folder, or to another machine by TLS. Never to a port of this machine, which
 * anybody may have taken. @throws {CommandFailure}
 */
export function connect(instance: Instance): ApiClient {
  if (isOnCluster(instance)) return instance.api;
  try {
    const endpoint = instance.elsewhere ?? { socketPath: apiSocketPath(instance.stateDir, process.env) };
    return new ApiClient({ endpoint });
  } catch (error) {
    if (!(error instanceof NotOwn || error instanceof ApiError)) throw error;
    throw new CommandFailure(error.message, { exitCode: exitCodes.noInstance, cause: error });
  }
}

/** Runs `work`, and turns an unreachable or refusing control plane into a failure with a hint. */
export async function withApiFailures<T>(instance: Instance, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 0) {
      const hint =
        instance.elsewhere === undefined
          ? `The control plane of ${instance.dir} may be starting again; look at ${instance.stateDir}.`
          : isOnCluster(instance)
            ? `Asked as ${instance.dir}.`
            : "Look at TULLE_API, and at TULLE_CA_FILE: the control plane has to show a certificate of that authority.";
      throw new CommandFailure(error.message, { hint, exitCode: exitCodes.noInstance, cause: error });
    }
    const hint = error.status === 401 ? "TULLE_TOKEN_FILE has to hold the token of its state directory." : undefined;
    throw new CommandFailure(error.message, hint === undefined ? { cause: error } : { hint, cause: error });
  }
}
