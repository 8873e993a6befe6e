// Asks the control plane's certificate authority over gRPC (Istio: IstioCertificateService/CreateCertificate).
import { createCertificate } from "@tulle/xds";
import type { SignCertificate } from "./certificate-signer.ts";
import { clientTls, controlPlaneName } from "./client-tls.ts";
import { explainTlsFailure, type FailurePlace } from "./explain-tls-failure.ts";

/** Asks the authority at `https://host:port`, on a connection of its own each time: it is asked twice a day. */
export function authorityClient(place: FailurePlace): SignCertificate {
  return async ({ csrPem, credentials, rootsPem: trustedPem }) => {
    const answer = await createCertificate({
      target: place.controlPlane,
      tls: () =>
        credentials.kind === "certificate"
          ? { ...clientTls(credentials.certificate), rootsPem: trustedPem }
          : { rootsPem: trustedPem, serverName: controlPlaneName },
      csrPem,
      ...(credentials.kind === "token" ? { bearerToken: credentials.token } : {}),
    });
    if (answer.ok) {
      const rootsPem = answer.certChain.at(-1) ?? "";
      return { ok: true, chainPem: answer.certChain.slice(0, -1).join(""), rootsPem };
    }
    const { status, details } = answer;
    return status === "UNAUTHENTICATED"
      ? {
          ok: false,
          kind: "credentials",
          reason: `the authority refuses the workload's ${credentials.kind}: ${details}`,
        }
      : { ok: false, kind: "other", reason: `${status} ${explainTlsFailure(details, place)}` };
  };
}
