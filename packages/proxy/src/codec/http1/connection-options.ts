// The fields that a message's Connection names as belonging to this hop (RFC 9110 §7.6.1): they go, unless the peer
// names one that is for the whole way.

const framingFields = new Set(["content-length", "transfer-encoding", "host"]);
/** By which a request says who sends it, and from where: policies, and proxies behind this one, judge by them. */
const trustedFields = new Set(["authorization", "cookie", "forwarded", "x-real-ip"]);
const trustedPrefixes = [":", "x-forwarded-", "x-envoy-"];
/** As Envoy. */
const maxClientOptions = 9;

/** `close`, `keep-alive` and `upgrade` say something of the connection itself, and `te` is read for what it says. */
const ownOptions = new Set(["close", "keep-alive", "upgrade", "te"]);

/**
 * False when the peer names one that message framing rests on. A client that has fields taken away which it could not
 * change itself hides what proxies before this one said of it: false as well.
 */
export function removeNominatedFields(connection: string, entries: string[], peer: "client" | "host"): boolean {
  if (connection === "keep-alive" || connection === "close") return true;
  // Both lists are the peer's: one pass over each, or the one times the other would be work for a small head.
  const named = new Set<string>();
  let count = 0;
  for (const part of connection.split(",")) {
    const option = part.trim().toLowerCase();
    if (option === "") continue;
    count += 1;
    if (framingFields.has(option) || (peer === "client" && (count > maxClientOptions || isTrusted(option))))
      return false;
    if (!ownOptions.has(option)) named.add(option);
  }
  if (named.size === 0) return true;
  let kept = 0;
  for (let index = 0; index < entries.length; index += 2) {
    if (named.has(entries[index]!)) continue;
    entries[kept] = entries[index]!;
    entries[kept + 1] = entries[index + 1]!;
    kept += 2;
  }
  entries.length = kept;
  return true;
}

function isTrusted(option: string): boolean {
  return trustedFields.has(option) || trustedPrefixes.some((prefix) => option.startsWith(prefix));
}
