// Proves that a measured proxy has really written its access log.
import { readFile } from "node:fs/promises";
import { waitFor } from "../../tests/tools/processes.ts";

/** Waits a little for what is in a buffer; the last second of the load may stay there. */
export async function checkAccessLog(name: string, file: string, requests: number): Promise<void> {
  let lines = 0;
  const isWritten = async (): Promise<boolean> => {
    lines = (await readFile(file, "latin1")).split("\n").length - 1;
    return lines >= requests / 2;
  };
  const details = (): string => `${lines} of ${requests} requests are there`;
  await waitFor(isWritten, { what: `the access log of ${name}`, intervalMs: 200, details });
}
