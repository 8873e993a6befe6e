// What an administrative operation answers: a value, or everything that is wrong with the request.

export type AdminResult<T> =
  | { readonly value: T; readonly problems?: never }
  | { readonly problems: readonly string[]; readonly value?: never };
