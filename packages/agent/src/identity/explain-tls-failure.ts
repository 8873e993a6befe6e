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
    // The control plane ends such connections after the handshake, and gRPC then knows no reason.
    symptom: /^Failed to connect|socket hang up|ECONNRESET/,
    explain: () =>
      "the control plane ended the connection: where it runs, it does not accept this workload's certificate, and its log says why",
  },
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

/** What gRPC wraps around the reason of a connection that could not be made. */
const wrapping =
  /^.*No connection established\. Last error: (?:Error(?: \[\w+\])?: )?([^]*?)\s*\.? ?Resolution note: *$/;

/** The reason with what it means; the reason alone where it speaks for itself. */
export function explainTlsFailure(reason: string, place: FailurePlace): string {
  const bare = wrapping.exec(reason)?.[1] ?? reason;
  const found = explanations.find(({ symptom }) => symptom.test(bare));
  return found === undefined ? bare : `${bare} (${found.explain(place)})`;
}
