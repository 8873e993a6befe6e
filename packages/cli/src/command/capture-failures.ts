// How a failure of nft is told to whoever ran the command.
import { CaptureFailure } from "@tulle/capture";
import { CommandFailure } from "./command-failure.ts";

/** @throws {CommandFailure} in the place of a `CaptureFailure` */
export async function withCaptureFailures<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof CaptureFailure)) throw error;
    throw new CommandFailure(error.message, { cause: error });
  }
}
