// Why a WebSocket to the API server has failed: the innermost reason is the one that a person can act on.

export function reasonOf(event: { readonly error?: unknown; readonly message?: string }): string {
  let deepest: unknown = event.error;
  while (deepest instanceof Error && deepest.cause instanceof Error) deepest = deepest.cause;
  return deepest instanceof Error ? deepest.message : (event.message ?? "it was refused");
}
