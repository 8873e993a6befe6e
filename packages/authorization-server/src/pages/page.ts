// The frame of every page and the headers that protect it.
import type { Answer } from "../http/messages.ts";
import { noStore } from "../http/messages.ts";
import type { ServerContext } from "../server-context.ts";
import type { HtmlValue } from "./html.ts";
import { Html, html } from "./html.ts";
import { digestOf, style } from "./style.ts";
import type { Look } from "./look.ts";
import { logoImage, lookStyle } from "./look.ts";
import type { Speech } from "./speech.ts";

export interface Page {
  readonly title: string;
  readonly content: HtmlValue;
  /** Of the application that the page leads to. */
  readonly look?: Look | undefined;
  readonly status?: number | undefined;
  /** Seconds. */
  readonly retryAfterSeconds?: number | undefined;
  readonly wide?: boolean;
  /** CSP sources beside our own that a form of this page may lead to; browsers apply them to redirects too. */
  readonly formTargets?: readonly string[];
  /** The one script of the page; the others have none. Without it the page does all that it is for. */
  readonly script?: string;
  /**
   * `Cross-Origin-Opener-Policy: same-origin`, for a page that no application leads to. Applications open sign-in and
   * logout in a window of their own and hear from their callback page through its opener, which any value but
   * `unsafe-none` would cut off.
   */
  readonly keepsNoOpener?: true;
}

const noLook: Look = { colour: undefined, logo: undefined };

// RFC 9700 §4.16 (framing) and §4.2.4 (referrer); nothing but our own markup and one style sheet is ever loaded.
function securityHeaders({ formTargets = [], script, look = noLook }: Page): Record<string, string> {
  const ownStyle = lookStyle(look);
  const policy = [
    "default-src 'none'",
    styleSource + (ownStyle === undefined ? "" : ` 'sha256-${digestOf(ownStyle)}'`),
    ...(look.logo === undefined ? [] : ["img-src data:"]),
    ...(script === undefined ? [] : [`script-src 'sha256-${digestOf(script)}'`]),
    `form-action ${["'self'", ...formTargets].join(" ")}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join("; ");
  return {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    ...noStore,
  };
}

const mark = new Html(
  '<svg class="mark" viewBox="5 4 26 28" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" aria-hidden="true">' +
    '<path d="M6 10c4-4 8-4 12 0s8 4 12 0M6 18c4-4 8-4 12 0s8 4 12 0M6 26c4-4 8-4 12 0s8 4 12 0"/></svg>',
);

const styleSource = `style-src 'sha256-${digestOf(style)}'`;
const styleElement = new Html(`<style>${style}</style>`);

export function pageAnswer(server: ServerContext, { texts }: Speech, page: Page): Answer {
  const { name } = server.config;
  const { host } = new URL(server.config.issuer);
  const look = page.look ?? noLook;
  const ownStyle = lookStyle(look);
  const body = html`<!doctype html>
<html lang="${texts.language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${page.title} · ${name ?? host}</title>
${styleElement}
${ownStyle === undefined ? undefined : new Html(`<style>${ownStyle}</style>`)}
</head>
<body>
<main${page.wide === true ? new Html(' class="wide"') : ""}>
<div class="marks">${mark}${logoImage(look)}</div>
${page.content}
</main>
<footer>${name === undefined ? undefined : html`<bdi>${name}</bdi> · `}<bdi>${host}</bdi></footer>
${page.script === undefined ? undefined : new Html(`<script>${page.script}</script>`)}
</body>
</html>
`;
  return {
    status: page.status ?? 200,
    headers: {
      ...securityHeaders(page),
      ...(page.keepsNoOpener === true ? { "cross-origin-opener-policy": "same-origin" } : {}),
      // RFC 9110 §8.5 and §12.5.5; no cache keeps a page, but some rewrite it.
      "content-language": texts.language,
      vary: "Accept-Language",
      ...(page.retryAfterSeconds === undefined ? {} : { "retry-after": String(page.retryAfterSeconds) }),
    },
    body: body.text,
  };
}
