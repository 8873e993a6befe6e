// Versions, ciphers and curves in Envoy's names, as OpenSSL gets them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createSecureContext } from "node:tls";
import { TlsParametersSchema } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/common_pb";
import { fromConfiguration } from "../testing/from-configuration.ts";
import { compileTlsParameters } from "./compile-tls-parameters.ts";
import { Place, Problems, problemText } from "../fields/problems.ts";

interface Row {
  readonly name: string;
  readonly input: object;
  readonly expected:
    | readonly string[]
    | { readonly ciphers?: RegExp; readonly versions?: string; readonly curves?: string };
}

const table: readonly Row[] = [
  { name: "nothing", input: {}, expected: { versions: "TLSv1.2 TLSv1.3", curves: "X25519:P-256" } },
  {
    name: "versions",
    input: { tls_minimum_protocol_version: "TLSv1_3", tls_maximum_protocol_version: "TLSv1_3" },
    expected: { versions: "TLSv1.3 TLSv1.3", ciphers: /^TLS_AES_128_GCM_SHA256:/ },
  },
  {
    name: "a group of ciphers",
    input: { cipher_suites: ["[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-ECDSA-CHACHA20-POLY1305]", "AES256-SHA"] },
    expected: { ciphers: /:ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305:AES256-SHA$/ },
  },
  {
    name: "TLS 1.2 alone has no ciphers of 1.3",
    input: { tls_maximum_protocol_version: "TLSv1_2" },
    expected: { versions: "TLSv1.2 TLSv1.2", ciphers: /^ECDHE/ },
  },
  {
    name: "curves",
    input: { ecdh_curves: ["P-384", "X25519MLKEM768"] },
    expected: { curves: "P-384:X25519MLKEM768" },
  },
  {
    name: "an unknown cipher",
    input: { cipher_suites: ["AES128-SHA", "ROT-13"] },
    expected: [
      "p.cipher_suites: Failed to initialize cipher suites AES128-SHA:ROT-13. The following ciphers were rejected when tried individually: ROT-13",
    ],
  },
  {
    name: "an unknown curve",
    input: { ecdh_curves: ["P-999"] },
    expected: ["p.ecdh_curves[0]: Failed to initialize ECDH curves P-999"],
  },
  { name: "signature algorithms", input: { signature_algorithms: ["ecdsa_secp256r1_sha256"] }, expected: {} },
  {
    name: "an unknown signature algorithm",
    input: { signature_algorithms: ["ecdsa_secp256r1_sha256", "rot13"] },
    expected: ["p.signature_algorithms: Failed to initialize TLS signature algorithms ecdsa_secp256r1_sha256:rot13"],
  },
  {
    name: "a minimum above the maximum",
    input: { tls_minimum_protocol_version: "TLSv1_3", tls_maximum_protocol_version: "TLSv1_2" },
    expected: ["p: tls_minimum_protocol_version TLSv1.3 is above tls_maximum_protocol_version TLSv1.2"],
  },
];

for (const { name, input, expected } of table) {
  test(name, () => {
    const problems = new Problems();
    const place = Place.root.field("p");
    const found = compileTlsParameters(fromConfiguration(TlsParametersSchema, input), place, problems);
    if (Array.isArray(expected)) {
      assert.deepEqual(problems.list.map(problemText), expected);
      return;
    }
    const wanted = expected as Exclude<Row["expected"], readonly string[]>;
    assert.deepEqual(problems.list, []);
    if (wanted.versions !== undefined) assert.equal(`${found.minVersion} ${found.maxVersion}`, wanted.versions);
    if (wanted.ciphers !== undefined) assert.match(found.ciphers, wanted.ciphers);
    if (wanted.curves !== undefined) assert.equal(found.ecdhCurves, wanted.curves);
    const { minVersion, maxVersion, ciphers, ecdhCurves, signatureAlgorithms: sigalgs } = found;
    createSecureContext({ minVersion, maxVersion, ciphers, ecdhCurve: ecdhCurves, ...(sigalgs !== "" && { sigalgs }) });
  });
}
