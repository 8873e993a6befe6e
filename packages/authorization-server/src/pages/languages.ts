// The languages of the pages, and which of them a reader gets.
import { english } from "./languages/english.ts";
import { french } from "./languages/french.ts";
import { german } from "./languages/german.ts";
import { japanese } from "./languages/japanese.ts";
import { spanish } from "./languages/spanish.ts";
import type { Texts } from "./texts.ts";

export const languageTags = ["en", "de", "fr", "es", "ja"] as const;
export type LanguageTag = (typeof languageTags)[number];

export const languages: Readonly<Record<LanguageTag, Texts>> = {
  en: english,
  de: german,
  fr: french,
  es: spanish,
  ja: japanese,
};

/** Wishes beyond these are not read: nobody speaks more languages, and the list is a stranger's. */
const maxRanges = 20;

/** RFC 4647 §3.4, Lookup: of wishes in the order of their weight, the first that some language is there for. */
export function lookupLanguage(ranges: readonly string[]): LanguageTag | undefined {
  for (const range of ranges.slice(0, maxRanges)) {
    let subtags = range.toLowerCase().split("-");
    while (subtags.length > 0) {
      const found = languageTags.find((tag) => tag.toLowerCase() === subtags.join("-"));
      if (found !== undefined) return found;
      subtags = subtags.slice(0, -1);
      if (subtags.at(-1)?.length === 1) subtags.pop();
    }
  }
  return undefined;
}

/** OpenID Connect Core §3.1.2.1: separated by spaces, in order of preference. */
export function rangesOfUiLocales(text: string): readonly string[] {
  return text.split(" ", maxRanges).filter((range) => range !== "");
}

/** RFC 9110 §12.5.4: by weight; those of weight 0 are not wanted, and `*` says nothing. */
export function rangesOfAcceptLanguage(header: string): readonly string[] {
  return header
    .split(",", maxRanges)
    .map((entry) => {
      const [range = "", ...parameters] = entry.split(";").map((part) => part.trim());
      const weight = parameters.find((parameter) => /^q=/i.test(parameter));
      return { range, weight: weight === undefined ? 1 : Number(weight.slice(2)) };
    })
    .filter(({ range, weight }) => range !== "*" && weight > 0)
    .toSorted((one, other) => other.weight - one.weight)
    .map(({ range }) => range);
}
