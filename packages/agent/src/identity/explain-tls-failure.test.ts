// Failures as gRPC and OpenSSL word them, and what a person is told.
import assert from "node:assert/strict";
import { test } from "node:test";
import { explainTlsFailure } from "./explain-tls-failure.ts";

const place = { controlPlane: "https://127.1.0.1:15012", rootsFile: "/mesh/root-cert.pem" };
const wrapped = (reason: string): string =>
  `cannot connect to https://127.1.0.1:15012: 14 UNAVAILABLE: No connection established. Last error: ${reason}. Resolution note: `;

const rows = [
  {
    name: "a root that is not trusted",
    input: wrapped("Error: unable to get local issuer certificate"),
    expected:
      /^unable to get local issuer certificate \(what https:\/\/127\.1\.0\.1:15012 shows does not lead to a root in \/mesh\/root-cert\.pem/,
  },
  {
    name: "another name",
    input: wrapped("Error [ERR_TLS_CERT_ALTNAME_INVALID]: Hostname/IP does not match certificate's altnames: Host: x."),
    expected: /^Hostname\/IP does not match .*\(something else than a control plane answers/,
  },
  {
    name: "a clock that is wrong",
    input: wrapped("Error: certificate is not yet valid"),
    expected: /^certificate is not yet valid \(compare this machine's clock/,
  },
  {
    name: "a port without TLS",
    input: wrapped(
      "Error: 40A3:error:0A00010B:SSL routines:tls_validate_record_header:wrong version number:tlsany_meth.c:78:\n",
    ),
    expected: /speaks no TLS: 15012 is the port with TLS, 15010 the one without\)$/,
  },
  {
    name: "nobody there",
    input: wrapped("Error: connect ECONNREFUSED 127.1.0.1:15012"),
    expected: /^connect ECONNREFUSED 127\.1\.0\.1:15012 \(nobody listens at/,
  },
  {
    name: "a certificate that the control plane refuses",
    input: wrapped("Failed to connect (2026-11-20T16:18:57.045Z)"),
    expected: /^Failed to connect .*it does not accept this workload's certificate, and its log says why\)$/,
  },
  {
    name: "an alert of the control plane",
    input: wrapped("Error: write EPROTO 00:error:0A000416:SSL routines::ssl/tls alert certificate unknown"),
    expected: /a restart of the pod gets a new one\)$/,
  },
  {
    name: "what speaks for itself",
    input: "7 PERMISSION_DENIED: the pod web-1.shop is not known here",
    expected: /^7 PERMISSION_DENIED: the pod web-1\.shop is not known here$/,
  },
];

for (const { name, input, expected } of rows) {
  test(name, () => assert.match(explainTlsFailure(input, place), expected));
}
