// Whether one of a token's audiences is one that is wanted. Scheme and last slash of a URL make no difference, as in
// Envoy.

export type AudienceCheck = (audiences: readonly string[]) => boolean;

/** Without wanted audiences every token will do. */
export function compileAudienceCheck(wanted: readonly string[]): AudienceCheck {
  if (wanted.length === 0) return () => true;
  const known = new Set(wanted.map(plainAudience));
  return (audiences) => audiences.some((audience) => known.has(audience) || known.has(plainAudience(audience)));
}

function plainAudience(audience: string): string {
  return audience.replace(/^https?:\/\//, "").replace(/\/$/, "");
}
