// A row of `fieldTable`, and the reasons that several of its parts give.

export interface FieldRow {
  /** Names separated by white space. */
  readonly used: string;
  /** Name → why the answer to a request is the same without it. */
  readonly harmless?: Readonly<Record<string, string>>;
  /** Name → what the operator is told. */
  readonly warned?: Readonly<Record<string, string>>;
}

export const noTracing = "tracing is not built yet";
export const socketTuning = "performance of sockets only";
