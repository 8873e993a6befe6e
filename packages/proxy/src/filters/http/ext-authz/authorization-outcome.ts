// What an external authorizer has decided about a request, whatever protocol it was asked by
// (Envoy: `Filters::Common::ExtAuthz::Response`).

export type HeaderPair = readonly [name: string, value: string];

export type AuthorizationOutcome = Allowed | Denied | { readonly kind: "error" };

export interface Allowed {
  readonly kind: "allowed";
  /** Of the request, in this order: replaced, appended where they are there, added, taken out. */
  readonly set: readonly HeaderPair[];
  readonly append: readonly HeaderPair[];
  readonly add: readonly HeaderPair[];
  readonly remove: readonly string[];
  readonly response: readonly ResponseHeaderChange[];
  readonly setParameters: readonly HeaderPair[];
  readonly removeParameters: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
}

export type ResponseHeaderAction = "add" | "set" | "add_if_absent" | "set_if_present";

export interface ResponseHeaderChange {
  readonly action: ResponseHeaderAction;
  readonly header: HeaderPair;
}

export interface Denied {
  readonly kind: "denied";
  readonly status: number;
  readonly headers: readonly HeaderPair[];
  readonly body: Buffer;
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
}

export const errorOutcome: AuthorizationOutcome = { kind: "error" };
