// Configured text that becomes part of a head: it must not end the line that it stands in (Envoy: well_known_regex
// HTTP_HEADER_VALUE), and goes out as UTF-8.
import { hasControlCharacter, utf8AsLatin1 } from "../http/header-value.ts";
import type { Place, Problems } from "./problems.ts";

/** The text as latin1 characters of its UTF-8 bytes. */
export function checkHeaderText(text: string, place: Place, problems: Problems): string {
  if (hasControlCharacter(text)) problems.error(place, "control characters are not allowed");
  return utf8AsLatin1(text);
}
