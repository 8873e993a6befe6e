// In which language a page speaks to who reads it: as the request asked (`ui_locales`), else as the browser says, else
// as the server's settings do. What the request asked for goes on in the addresses of the pages that follow.
import type { EndpointRequest } from "../http/messages.ts";
import { isForm } from "../http/messages.ts";
import { Parameters } from "../protocol/parameters.ts";
import type { ServerContext } from "../server-context.ts";
import { languages, lookupLanguage, rangesOfAcceptLanguage, rangesOfUiLocales } from "./languages.ts";
import type { Plural, Texts } from "./texts.ts";
import type { HtmlValue } from "./html.ts";
import { Html, html } from "./html.ts";

export interface Speech {
  readonly texts: Texts;
  /**
   * `ui_locales=de` for the addresses of the next pages, where the request asked for it and not the browser; else
   * empty.
   */
  readonly asked: string;
}

export function speechFor(server: ServerContext, request: EndpointRequest): Speech {
  const asked = askedLocales(request);
  const found = asked === undefined ? undefined : lookupLanguage(rangesOfUiLocales(asked));
  if (found !== undefined) return { texts: languages[found], asked: `ui_locales=${found}` };
  const accepted = lookupLanguage(rangesOfAcceptLanguage(request.headers["accept-language"] ?? ""));
  return { texts: languages[accepted ?? server.config.language], asked: "" };
}

function askedLocales(request: EndpointRequest): string | undefined {
  const inAddress = Parameters.parse(request.query).get("ui_locales");
  if (inAddress !== undefined || request.method !== "POST" || !isForm(request)) return inAddress;
  return Parameters.parse(request.body).get("ui_locales");
}

/** An address of ours, in the same language. */
export function inSameLanguage(address: string, { asked }: Speech): string {
  if (asked === "") return address;
  return `${address}${address.includes("?") ? "&" : "?"}${asked}`;
}

const placeholder = /\{(\w+)\}/;

/** The pattern with its values, each isolated, so that its direction of writing ends with it. */
export function fill(pattern: string, values: Readonly<Record<string, HtmlValue>>): Html {
  const parts = pattern.split(placeholder);
  const filled = parts.map((part, index) => (index % 2 === 0 ? html`${part}` : html`<bdi>${values[part]}</bdi>`));
  return new Html(filled.map(({ text }) => text).join(""));
}

// Hebrew, Arabic and their neighbours (Unicode, DerivedBidiClass R and AL).
const rightToLeft = /[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** The same where no markup can stand, as in titles: right-to-left values stand between isolating characters. */
export function fillText(pattern: string, values: Readonly<Record<string, string>>): string {
  const parts = pattern.split(placeholder);
  return parts
    .map((part, index) => {
      if (index % 2 === 0) return part;
      const value = values[part]!;
      return rightToLeft.test(value) ? `\u2068${value}\u2069` : value;
    })
    .join("");
}

export function counted({ language }: Texts, plural: Plural, count: number): string {
  const category = new Intl.PluralRules(language).select(count);
  return fillText(plural[category] ?? plural.other, { count: new Intl.NumberFormat(language).format(count) });
}

/** "45 seconds", or "5 minutes" once they are many: rounded up, so that nobody comes too early. */
export function duration({ language }: Texts, seconds: number): string {
  const format = new Intl.DurationFormat(language, { style: "long" });
  if (seconds <= 90) return format.format({ seconds });
  const minutes = Math.ceil(seconds / 60);
  return minutes < 120 ? format.format({ minutes }) : format.format({ hours: Math.ceil(minutes / 60) });
}
