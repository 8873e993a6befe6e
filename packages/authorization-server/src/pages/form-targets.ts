// CSP form-action covers redirects that follow a form, so the redirect URI of the client must be among its sources, and
// whatever a client's own login redirects on to; without that Chromium stops on the consent page in silence.

export function formTargets(redirectUri: string, extras: readonly string[]): readonly string[] {
  const url = new URL(redirectUri);
  const own = url.protocol === "http:" || url.protocol === "https:" ? url.origin : url.protocol;
  return [...new Set(["https:", own, ...extras])];
}
