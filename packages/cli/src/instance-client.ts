// The API client of a running instance, and what a person is told when it does not answer.
import { readFile } from "node:fs/promises";
import { ApiClient, ApiError } from "@tulle/config";
import type { Instance } from "@tulle/local/instance";
import { CommandFailure, exitCodes } from "./command-failure.ts";

/** A client that may read, as everybody on this machine may. */
export function connectToRead(instance: Instance): ApiClient {
  return new ApiClient({ endpoint: { url: instance.apiUrl } });
}

/** A client that may write: it carries the token of the state directory. */
export async function connect(instance: Instance): Promise<ApiClient> {
  let token: string;
  try {
    token = (await readFile(instance.tokenFile, "utf8")).trim();
  } catch (error) {
    throw new CommandFailure(`the token ${instance.tokenFile} cannot be read: ${(error as Error).message}`, {
      hint: "Only the user who started the instance may change it.",
      cause: error,
    });
  }
  return new ApiClient({ endpoint: { url: instance.apiUrl }, token });
}

/** Runs `work`, and turns an unreachable or refusing control plane into a failure with a hint. */
export async function withApiFailures<T>(instance: Instance, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 0) {
      throw new CommandFailure(error.message, {
        hint: `The control plane of ${instance.dir} may be starting again; look at ${instance.stateDir}.`,
        exitCode: exitCodes.noInstance,
        cause: error,
      });
    }
    const hint = error.status === 401 ? `Writes need the token in ${instance.tokenFile}.` : undefined;
    throw new CommandFailure(error.message, hint === undefined ? { cause: error } : { hint, cause: error });
  }
}
