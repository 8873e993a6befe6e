// Whether a text names a host and a port: what stands in a Host field, and what stands in a request's target. A host
// that two readers would take for different ones is refused here, before a route is looked for.
import net from "node:net";

const port = "(?:[0-5]?\\d{1,4}|6[0-4]\\d{3}|65[0-4]\\d\\d|655[0-2]\\d|6553[0-5])";

/**
 * RFC 9110 §7.2: a name by RFC 3986 §3.2.2 without escapes, which nobody needs in a host and not everybody decodes;
 * nothing at all where the target has no host. No user information (§4.2.4).
 */
const hostField = new RegExp(`^(?:[-A-Za-z0-9._~!$&'()*+,;=]+(?::${port}?)?)?$`);
const hostFieldLiteral = new RegExp(`^\\[([0-9A-Fa-f:.]+)\\](?::${port}?)?$`);

/** As Envoy reads URLs, and underscores, which names of containers have. */
const targetName = new RegExp(`^[-A-Za-z0-9._]+(?::${port})?$`);
const targetLiteral = new RegExp(`^\\[([0-9A-Fa-f:.]+)\\](?::${port})?$`);
const withPort = /:\d+$/;

export function isHostField(text: string): boolean {
  return hostField.test(text) || isLiteral(hostFieldLiteral, text);
}

/** The authority of a target in absolute form. */
export function isTargetAuthority(text: string): boolean {
  return targetName.test(text) || isLiteral(targetLiteral, text);
}

/** The target of a CONNECT (RFC 9112 §3.2.3). */
export function isConnectTarget(text: string): boolean {
  return withPort.test(text) && isTargetAuthority(text);
}

/** Zones of IPv6 addresses mean something to their own machine alone. */
function isLiteral(pattern: RegExp, text: string): boolean {
  const address = pattern.exec(text)?.[1];
  return address !== undefined && net.isIPv6(address);
}
