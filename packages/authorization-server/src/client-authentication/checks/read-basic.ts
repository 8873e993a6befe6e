// RFC 6749 §2.3.1: both halves of Basic are form-urlencoded before they are joined. Many libraries leave that out, so
// outside of strict mode the halves are tried as they stand too.
import { decodeFormText } from "../../protocol/parameters.ts";
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { ServerContext } from "../../server-context.ts";
import type { ClientDraft, Credentials } from "../draft.ts";

const malformed = "the Authorization header is not Basic with base64 of client_id:client_secret, both form-urlencoded";
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function readBasic(draft: ClientDraft, { config }: ServerContext): Refusal | undefined {
  const header = draft.request.headers.authorization;
  if (header === undefined) return undefined;
  if (!/^basic( |$)/i.test(header))
    return refuse(
      "invalid_client",
      "the authentication scheme is not supported; use Basic or the parameter client_secret",
    );
  const text = decodeBase64(header.slice(5).trim());
  const colon = text?.indexOf(":") ?? -1;
  if (text === undefined || colon < 1) return refuse("invalid_request", malformed);
  const halves = [text.slice(0, colon), text.slice(colon + 1)] as const;
  const readings: Credentials[] = [];
  const id = decodeFormText(halves[0]);
  const secret = decodeFormText(halves[1]);
  if (id !== undefined && secret !== undefined) readings.push(credentials(id, secret));
  if (!config.strict && (id !== halves[0] || secret !== halves[1])) readings.push(credentials(...halves));
  if (readings.length === 0 || readings.some((reading) => /\p{Cc}/u.test(reading.clientId + (reading.secret ?? ""))))
    return refuse("invalid_request", malformed);
  draft.basic = readings;
  return undefined;
}

function credentials(clientId: string, secret: string): Credentials {
  // RFC 6749 §2.3.1: an empty secret counts as none, as public clients of some libraries send it.
  return { clientId, secret: secret === "" ? undefined : secret };
}

function decodeBase64(text: string): string | undefined {
  if (text === "" || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) return undefined;
  try {
    return utf8.decode(Buffer.from(text, "base64"));
  } catch {
    return undefined;
  }
}
