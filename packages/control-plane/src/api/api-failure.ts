// What a handler of the HTTP API throws to answer with a status of its own.
import type { Finding } from "@tulle/config";

/** Becomes an `ErrorResponse`. */
export class ApiFailure extends Error {
  readonly status: number;
  readonly findings: readonly Finding[] | undefined;

  constructor(status: number, message: string, findings?: readonly Finding[]) {
    super(message);
    this.status = status;
    this.findings = findings;
  }
}
