// The authority over HTTP: what it is and trusts, and the operator's word to change its root.
import type { authorityEndpoints, AuthorityStatus, CertificateStatus } from "@tulle/config/api";
import type { Certificate } from "@tulle/identity";
import { ApiFailure } from "./api-failure.ts";
import type { Handlers, JsonReply } from "./routes.ts";
import { type MeshAuthority, RotationRefused } from "../ca/mesh-authority.ts";

/** Undefined where the control plane has no authority: then the answers say so. */
export function caRoutes(found: MeshAuthority | undefined): Handlers<typeof authorityEndpoints> {
  const authority = (): MeshAuthority => {
    if (found === undefined)
      throw new ApiFailure(404, "this control plane is no certificate authority: --xds-tls makes it one");
    return found;
  };
  return {
    authority: () => ({ status: 200, json: statusOf(authority()) }),
    rotateRoot: ({ query }) => rotate(authority(), query),
  };
}

async function rotate(authority: MeshAuthority, query: URLSearchParams): Promise<JsonReply<AuthorityStatus>> {
  const introduceMs = milliseconds(query, "introduceSeconds");
  const overlapMs = milliseconds(query, "overlapSeconds");
  const times = {
    ...(introduceMs === undefined ? {} : { introduceMs }),
    ...(overlapMs === undefined ? {} : { overlapMs }),
  };
  try {
    const changed = await authority.rotateRoot(times, { force: query.get("force") === "true" });
    if (!changed) throw new ApiFailure(409, "the folder of the authority holds what is in use already");
  } catch (error) {
    if (error instanceof RotationRefused) throw new ApiFailure(409, error.message);
    throw error;
  }
  return { status: 200, json: statusOf(authority) };
}

function milliseconds(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  // Ten years are longer than any authority of ours lives.
  if (!/^\d{1,9}$/.test(text)) throw new ApiFailure(400, `${name} must be whole seconds`);
  return Number(text) * 1000;
}

function statusOf({ signing, isBroughtAlong }: MeshAuthority): AuthorityStatus {
  const { state, rotationDueMs } = signing;
  return {
    trustDomain: signing.trustDomain,
    phase: state.phase,
    ...(rotationDueMs === undefined ? {} : { phaseEnds: new Date(rotationDueMs).toISOString() }),
    isBroughtAlong,
    signing: certificateStatus(state.signing.certificate),
    roots: signing.roots.map(certificateStatus),
  };
}

function certificateStatus({ subject, serial, notBeforeMs, notAfterMs }: Certificate): CertificateStatus {
  return {
    subject,
    serial,
    notBefore: new Date(notBeforeMs).toISOString(),
    notAfter: new Date(notAfterMs).toISOString(),
  };
}
