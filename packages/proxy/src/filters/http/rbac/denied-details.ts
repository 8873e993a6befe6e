// Why a policy refused, as access logs show it: code details of a request, termination details of a connection.

/** The space of a name would end the field of an access log (Envoy: responseDetail). */
export function deniedDetails(policy: string): string {
  return `rbac_access_denied_matched_policy[${policy.replaceAll(/\s/g, "_")}]`;
}
