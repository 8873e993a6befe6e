// What an application looks like on the pages that lead to it. Its colour is moved towards black or white until
// everything written in it, or on it, can be read (WCAG 2.2, 1.4.3), in light and in dark; its logo lies in the page
// itself, so that nobody learns who looks at it.
import type { Html } from "./html.ts";
import { html } from "./html.ts";

export interface Look {
  /** `#rrggbb` */
  readonly colour: string | undefined;
  /** A `data:` URL of a PNG or JPEG. */
  readonly logo: string | undefined;
}

type Rgb = readonly [number, number, number];

const black: Rgb = [0, 0, 0];
const white: Rgb = [255, 255, 255];
/** Of style.ts. */
const cards = { light: white, dark: [0x1e, 0x22, 0x26] } as const;
const leastContrast = 4.5;

function parseColour(text: string): Rgb {
  const channel = (at: number): number => Number.parseInt(text.slice(at, at + 2), 16);
  return [channel(1), channel(3), channel(5)];
}

function formatColour(colour: Rgb): string {
  return `#${colour.map((channel) => Math.round(channel).toString(16).padStart(2, "0")).join("")}`;
}

function mix(colour: Rgb, other: Rgb, share: number): Rgb {
  const [red, green, blue] = colour.map((channel, index) => Math.round(channel + (other[index]! - channel) * share));
  return [red!, green!, blue!];
}

function luminance(colour: Rgb): number {
  const [red, green, blue] = colour.map((channel) => {
    const value = channel / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

/** WCAG's ratio, 1 to 21, of two `#rrggbb`. */
export function contrast(one: string, other: string): number {
  return ratio(parseColour(one), parseColour(other));
}

function ratio(one: Rgb, other: Rgb): number {
  const [low, high] = [luminance(one), luminance(other)].toSorted((a, b) => a - b);
  return (high! + 0.05) / (low! + 0.05);
}

export interface AccentColours {
  readonly accent: string;
  readonly ink: string;
  readonly hover: string;
  readonly tint: string;
}

/** The nearest colours of that hue that can be read on a card, on the tint, and below the ink of buttons. */
export function accentColours(colour: string, scheme: "light" | "dark"): AccentColours {
  const card: Rgb = cards[scheme];
  const away = scheme === "light" ? black : white;
  const ink = scheme === "light" ? white : black;
  for (let share = 0; ; share += 0.02) {
    const accent = mix(parseColour(colour), away, Math.min(share, 1));
    const tint = mix(card, accent, 0.1);
    const readable = [card, tint, ink].every((other) => ratio(accent, other) >= leastContrast);
    if (!readable && share < 1) continue;
    const hover = mix(accent, away, 0.2);
    return {
      accent: formatColour(accent),
      ink: formatColour(ink),
      hover: formatColour(hover),
      tint: formatColour(tint),
    };
  }
}

function declarations(colour: string, scheme: "light" | "dark"): string {
  const { accent, ink, hover, tint } = accentColours(colour, scheme);
  return `:root{--accent:${accent};--accent-ink:${ink};--accent-hover:${hover};--tint:${tint}}`;
}

/** A style sheet of its own; undefined without a colour. */
export function lookStyle({ colour }: Look): string | undefined {
  if (colour === undefined) return undefined;
  return `${declarations(colour, "light")}@media (prefers-color-scheme:dark){${declarations(colour, "dark")}}`;
}

/** Its name stands in the heading, so it says nothing more to who cannot see it. */
export function logoImage({ logo }: Look): Html | undefined {
  return logo === undefined ? undefined : html`<img class="logo" src="${logo}" alt="" width="40" height="40" />`;
}
