// What a failed connection to the control plane means, and what to do: OpenSSL's words name the symptom alone.

interface Explanation {
  readonly symptom: RegExp;
  readonly explain: (place: FailurePlace) => string;
}

export interface FailurePlace {
  readonly controlPlane: string;
  readonly rootsFile: string;
}

/** The first that fits counts: alerts come from the other end, the rest is this end's own judgement. */
const explanations: readonly Explanation[] = [
  {
    symptom: /alert (?:bad certificate|unknown ca|certificate (?:required|expired|revoked|unknown)|access denied)/i,
    explain: () =>
      "the control plane does not accept this workload's certificate; its log says why, and a restart of the pod gets a new one",
  },
  {
    symptom: /self[- ]signed certificate|unable to (?:get (?:local )?issuer|verify the first)|certificate signature/i,
    explain: ({ controlPlane, rootsFile }) =>
      `what ${controlPlane} shows does not lead to a root in ${rootsFile}: it belongs to another mesh, or the file is left over from an older authority`,
  },
  {
    symptom: /certificate (?:has expired|is not yet valid)/i,
    explain: ({ controlPlane }) => `compare this machine's clock with that of ${controlPlane}`,
  },
  {
    symptom: /does not match certificate's altnames|Hostname\/IP does not match/i,
    explain: ({ controlPlane }) => `something else than a control plane answers at ${controlPlane}`,
  },
  {
    symptom: /wrong version number|packet length too long|unknown protocol|EPROTO|http request/i,
    explain: ({ controlPlane }) =>
      `what answers at ${controlPlane} speaks no TLS: 15012 is the port with TLS, 15010 the one without`,
  },
  {
    symptom: /ECONNREFUSED/,
    explain: ({ controlPlane }) => `nobody listens at ${controlPlane}: see whether the control plane runs`,
  },
];

/** The reason with what it means; the reason alone where it speaks for itself. */
export function explainTlsFailure(reason: string, place: FailurePlace): string {
  const found = explanations.find(({ symptom }) => symptom.test(reason));
  return found === undefined ? reason : `${reason} (${found.explain(place)})`;
}
