// The `date` header of responses, made once a second (RFC 9110 §5.6.7).

let cachedSecond = -1;
let cachedText = "";

/** IMF-fixdate of a wall-clock time in milliseconds. */
export function dateHeader(wallMs: number): string {
  const second = Math.floor(wallMs / 1000);
  if (second !== cachedSecond) {
    cachedSecond = second;
    cachedText = new Date(second * 1000).toUTCString();
  }
  return cachedText;
}
