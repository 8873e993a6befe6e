// Where TLS begins at a gateway's servers: those with the workload's own certificate follow the mesh, the others the
// Gateway alone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { TlsParameters_TlsProtocol as TlsProtocol } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/common_pb";
import type { GatewayChainTls } from "../scope/gateway-view.ts";
import { gatewayTls } from "./gateway-tls-context.ts";

const mesh = { mode: "ISTIO_MUTUAL", trustDomain: "cluster.local" } as const;
const own = { mode: "SIMPLE", credentialName: "shop-tls" } as const;

const table: readonly { readonly name: string; readonly tls: GatewayChainTls; readonly expected: TlsProtocol }[] = [
  { name: "a workload's certificate", tls: mesh, expected: TlsProtocol.TLSv1_3 },
  { name: "the mesh begins at 1.2", tls: { ...mesh, minimumTls: "TLSV1_2" }, expected: TlsProtocol.TLSv1_2 },
  { name: "the server begins at 1.2", tls: { ...mesh, minProtocolVersion: "TLSV1_2" }, expected: TlsProtocol.TLSv1_2 },
  { name: "a certificate of its own", tls: own, expected: TlsProtocol.TLSv1_2 },
  {
    name: "a certificate of its own, from 1.3 on",
    tls: { ...own, minProtocolVersion: "TLSV1_3" },
    expected: TlsProtocol.TLSv1_3,
  },
];

test("several certificates, the first one's authorities, and no cipher suite that a proxy does not know", () => {
  const { commonTlsContext } = gatewayTls(
    {
      mode: "MUTUAL",
      credentialNames: ["rsa", "ec"],
      cipherSuites: ["ALL", "AES128-SHA", "AES128-SHA", "NULL-MD5"],
    },
    [],
  );
  const { tlsCertificateSdsSecretConfigs, tlsParams, validationContextType } = commonTlsContext!;
  assert.deepEqual(
    tlsCertificateSdsSecretConfigs.map(({ name }) => name),
    ["kubernetes://rsa", "kubernetes://ec"],
  );
  assert.deepEqual(tlsParams?.cipherSuites, ["AES128-SHA"]);
  assert.equal(validationContextType.case, "combinedValidationContext");
  assert.equal(validationContextType.value?.validationContextSdsSecretConfig?.name, "kubernetes://rsa-cacert");
});

for (const { name, tls, expected } of table) {
  test(name, () => {
    const { tlsParams } = gatewayTls(tls, []).commonTlsContext!;
    assert.equal(tlsParams?.tlsMinimumProtocolVersion, expected);
  });
}
