// Field lines of HTTP/1.1 as text, for what is written seldom enough to be put together apart: trailers and 1xx.

/** `entries` are names and values in turn; every line has its CRLF. */
export function fieldLines(entries: readonly string[]): string {
  let text = "";
  for (let index = 0; index < entries.length; index += 2) text += `${entries[index]!}: ${entries[index + 1]!}\r\n`;
  return text;
}
