// What becomes of each field of one of Envoy's messages. Rows lie beside who compiles the message; `checkedMessage`
// puts them together.

export interface FieldRow {
  /** Names of fields that are acted on, separated by white space. */
  readonly used: string;
  /** Name → why the answer to a request is the same without it. */
  readonly harmless?: Readonly<Record<string, string>>;
  /** Name → what the operator is told. */
  readonly warned?: Readonly<Record<string, string>>;
  /** Names of fields that the compiler refuses or warns of in words of its own. */
  readonly told?: string;
  /** Names of fields that hold resources which are checked by themselves. */
  readonly apart?: string;
}

/** A message that is passed on or told of as a whole, and why nothing in it can be asked of this proxy. */
export interface WholeRow {
  readonly whole: string;
}

/** Rows by the message's full name; a text is a row that has only `used`. */
export type FieldRows = Readonly<Record<string, FieldRow | WholeRow | string>>;

export const socketTuning = "performance of sockets only";
export const systemResolver = "the system's resolver is used";
export const oneVersion = "there is one version";
export const noRuntime = "no runtime layer overrides it";
