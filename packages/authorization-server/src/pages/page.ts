// The frame of every page and the headers that protect it.
import type { Answer, AnswerHeaders } from "../http/messages.ts";
import { noStore } from "../http/messages.ts";
import type { ServerContext } from "../server-context.ts";
import type { HtmlValue } from "./html.ts";
import { Html, html } from "./html.ts";
import { style, styleDigest } from "./style.ts";
import { english } from "./texts.ts";
import type { Texts } from "./texts.ts";

export interface Page {
  readonly title: string;
  readonly content: HtmlValue;
  readonly status?: number;
  readonly wide?: boolean;
  /** CSP sources beside our own that a form of this page may lead to; browsers apply them to redirects too. */
  readonly formTargets?: readonly string[];
  /** SHA-256 of the one script of the page; the others have none. */
  readonly scriptDigest?: string;
  readonly headers?: AnswerHeaders;
}

/** The only language there is yet; the request will choose here. */
export function textsFor(_server: ServerContext): Texts {
  return english;
}

// RFC 9700 §4.16 (framing) and §4.2.4 (referrer); nothing but our own markup and one style sheet is ever loaded.
function securityHeaders(formTargets: readonly string[], scriptDigest: string | undefined): Record<string, string> {
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${styleDigest}'`,
    ...(scriptDigest === undefined ? [] : [`script-src 'sha256-${scriptDigest}'`]),
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
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    ...noStore,
  };
}

const mark = new Html(
  '<svg class="mark" viewBox="5 4 26 28" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" aria-hidden="true">' +
    '<path d="M6 10c4-4 8-4 12 0s8 4 12 0M6 18c4-4 8-4 12 0s8 4 12 0M6 26c4-4 8-4 12 0s8 4 12 0"/></svg>',
);

const styleElement = new Html(`<style>${style}</style>`);

export function pageAnswer(server: ServerContext, page: Page): Answer {
  const texts = textsFor(server);
  const host = new URL(server.config.issuer).host;
  const body = html`<!doctype html>
<html lang="${texts.language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${page.title} · ${host}</title>
${styleElement}
</head>
<body>
<main${page.wide === true ? new Html(' class="wide"') : ""}>
${mark}
${page.content}
</main>
<footer>${host}</footer>
</body>
</html>
`;
  return {
    status: page.status ?? 200,
    headers: { ...securityHeaders(page.formTargets ?? [], page.scriptDigest), ...page.headers },
    body: body.text,
  };
}
