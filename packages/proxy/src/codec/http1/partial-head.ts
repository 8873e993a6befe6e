// The beginning of a request's head, before its end has come: what can be no request is answered at once and not when a
// time-out ends the wait for the rest.
import { HttpProtocolError } from "../stream-codec.ts";

const carriageReturn = 13;
const lineFeed = 10;
const upperA = 65;
const upperZ = 90;

/** What is wrong already with the bytes from `position` on; undefined while they may become a head. */
export function faultOfPartialHead(
  data: Buffer,
  position: number,
  maxHeadBytes: number,
): HttpProtocolError | undefined {
  if (data.length - position > maxHeadBytes) return new HttpProtocolError(431, "http1.headers_too_large");
  const first = data[position]!;
  // A CR may begin an empty line whose LF has not come yet (RFC 9112 §2.2).
  if ((first < upperA || first > upperZ) && first !== carriageReturn) {
    return new HttpProtocolError(400, "http1.codec_error");
  }
  for (let at = data.indexOf(lineFeed, position); at >= 0; at = data.indexOf(lineFeed, at + 1)) {
    if (at === position || data[at - 1] !== carriageReturn) return new HttpProtocolError(400, "http1.bare_lf");
  }
  return undefined;
}
