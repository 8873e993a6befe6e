// TLS that ends at a filter chain, against stock Envoy with the same bootstrap: who is let in, which certificate and
// which chain a client meets, and what back end, logs and statistics are told of it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type tls from "node:tls";
import { extension, type HelloParts, helloFrom, inRecordsOf, serverName, versions } from "../testing/made-hello.ts";
import { type TestCertificate, testCertificate } from "../../../../tests/tools/certificates.ts";
import {
  startTlsParityPair,
  type TlsParityCall,
  type TlsParityListener,
  type TlsParityOutcome,
  type TlsParityPair,
} from "../testing/tls-parity.ts";
import { inline } from "../testing/envoy-json.ts";

const requestOperators = `DOWNSTREAM_PEER_URI_SAN DOWNSTREAM_PEER_DNS_SAN DOWNSTREAM_PEER_IP_SAN DOWNSTREAM_PEER_EMAIL_SAN
  DOWNSTREAM_PEER_SUBJECT DOWNSTREAM_PEER_ISSUER DOWNSTREAM_PEER_FINGERPRINT_256 DOWNSTREAM_PEER_FINGERPRINT_1
  DOWNSTREAM_PEER_SERIAL DOWNSTREAM_PEER_CERT DOWNSTREAM_PEER_CERT_V_START DOWNSTREAM_PEER_CERT_V_START(%d.%m.%Y)
  DOWNSTREAM_PEER_CERT_V_END DOWNSTREAM_LOCAL_URI_SAN DOWNSTREAM_LOCAL_DNS_SAN DOWNSTREAM_LOCAL_SUBJECT
  DOWNSTREAM_TLS_VERSION DOWNSTREAM_TLS_CIPHER DOWNSTREAM_TLS_SESSION_ID REQUESTED_SERVER_NAME
  DOWNSTREAM_TRANSPORT_FAILURE_REASON RESPONSE_FLAGS RESPONSE_CODE`;
const connectionOperators = `DOWNSTREAM_TRANSPORT_FAILURE_REASON RESPONSE_FLAGS RESPONSE_CODE_DETAILS
  CONNECTION_TERMINATION_DETAILS REQUESTED_SERVER_NAME DOWNSTREAM_PEER_URI_SAN BYTES_RECEIVED
  PROTOCOL ACCESS_LOG_TYPE`;
const format = (operators: string): string =>
  operators
    .split(/\s+/)
    .map((operator) => `${operator.replaceAll("%", "")}=%${operator}%`)
    .join("\t");

const modes = ["SANITIZE", "FORWARD_ONLY", "APPEND_FORWARD", "SANITIZE_SET", "ALWAYS_FORWARD_ONLY"] as const;
const uri = (domain: string): string => `URI:spiffe://${domain}/ns/shop/sa/web`;
const inspector = (name: string, type: string): object => ({
  name,
  typed_config: { "@type": `type.googleapis.com/envoy.extensions.filters.listener.${name}.v3.${type}` },
});
const tlsInspector = inspector("tls_inspector", "TlsInspector");
const httpInspector = inspector("http_inspector", "HttpInspector");

async function makeIdentities() {
  const authority = await testCertificate({ subject: "/O=cluster.local", isAuthority: true });
  const other = await testCertificate({ subject: "/O=elsewhere", isAuthority: true });
  const [server, second, good, many, foreign, expired, early, wrongName, untrusted, selfSigned] = await Promise.all([
    testCertificate({
      subject: "/O=server",
      names: ["URI:spiffe://cluster.local/ns/shop/sa/catalog", "DNS:a.example"],
      issuer: authority,
    }),
    testCertificate({ subject: "/O=second", names: ["DNS:*.b.example"], issuer: authority }),
    testCertificate({
      subject: "/O=Tulle, Inc/OU=a \\+ b/CN=näme",
      names: [uri("cluster.local"), "DNS:web.shop"],
      issuer: authority,
    }),
    testCertificate({
      names: ["DNS:p.q", "IP:10.0.0.1", "email:a@b.c", "DNS:r.s", uri("cluster.local"), "URI:https://x/y"],
      issuer: authority,
    }),
    testCertificate({ names: [uri("other.domain")], issuer: authority }),
    testCertificate({ names: [uri("cluster.local")], issuer: authority, fromDays: -2, days: -1 }),
    testCertificate({ names: [uri("cluster.local")], issuer: authority, fromDays: 1 }),
    testCertificate({ names: ["DNS:web.shop"], issuer: authority }),
    testCertificate({ names: [uri("cluster.local")], issuer: other }),
    testCertificate({ names: [uri("cluster.local")] }),
  ]);
  return { authority, server, second, good, many, foreign, expired, early, wrongName, untrusted, selfSigned };
}

type Identities = Awaited<ReturnType<typeof makeIdentities>>;

function makeListeners({ authority, server, second }: Identities): readonly TlsParityListener[] {
  const certificate = ({ certificate: chain, key }: TestCertificate): object => ({
    certificate_chain: inline(chain),
    private_key: inline(key),
  });
  const common = {
    tls_certificates: [certificate(server)],
    validation_context: {
      trusted_ca: inline(authority.certificate),
      match_typed_subject_alt_names: [{ san_type: "URI", matcher: { prefix: "spiffe://cluster.local/" } }],
    },
  };
  const mutual = { require_client_certificate: true, common_tls_context: common };
  const between = (tls_minimum_protocol_version: string, tls_maximum_protocol_version: string): object => ({
    common_tls_context: {
      tls_params: { tls_minimum_protocol_version, tls_maximum_protocol_version },
      tls_certificates: [certificate(server)],
    },
  });
  const one = (name: string, context: object, listenerFilters: readonly object[] = []): TlsParityListener => ({
    name,
    listenerFilters,
    chains: [{ name, tls: context }],
  });
  const hashes = { trusted_ca: inline(authority.certificate), verify_certificate_hash: ["00".repeat(32)] };
  const details = { subject: true, cert: true, chain: true, dns: true, uri: true };
  return [
    one("mutual", mutual, [tlsInspector]),
    one("bare", mutual),
    one("optional", { common_tls_context: common }),
    one("hash", { common_tls_context: { tls_certificates: [certificate(server)], validation_context: hashes } }),
    one("tls13", between("TLSv1_3", "TLSv1_3")),
    one("tls12", between("TLSv1_2", "TLSv1_2")),
    one("protocols", { common_tls_context: { tls_certificates: [certificate(server)], alpn_protocols: ["http/1.1"] } }),
    one("certificates", { common_tls_context: { tls_certificates: [certificate(server), certificate(second)] } }),
    {
      name: "names",
      listenerFilters: [tlsInspector],
      chains: [
        {
          name: "exact",
          match: { server_names: ["a.example"] },
          tls: { common_tls_context: { tls_certificates: [certificate(server)] } },
        },
        {
          name: "wild",
          match: { server_names: ["*.b.example"] },
          tls: { common_tls_context: { tls_certificates: [certificate(second)] } },
        },
      ],
    },
    {
      name: "permissive",
      listenerFilters: [tlsInspector, httpInspector],
      chains: [
        {
          name: "istio",
          match: { transport_protocol: "tls", application_protocols: ["istio", "istio-http/1.1"] },
          tls: { ...mutual, common_tls_context: { ...common, alpn_protocols: ["istio-http/1.1", "http/1.1"] } },
        },
        {
          name: "tls",
          match: { transport_protocol: "tls" },
          tls: { common_tls_context: { tls_certificates: [certificate(second)], alpn_protocols: ["http/1.1"] } },
        },
        { name: "http", match: { transport_protocol: "raw_buffer", application_protocols: ["http/1.1"] } },
        { name: "raw", match: { transport_protocol: "raw_buffer" } },
      ],
    },
    ...modes.map((mode) => ({
      name: mode,
      chains: [
        {
          name: mode,
          tls: {
            common_tls_context: {
              ...common,
              validation_context: { ...common.validation_context, trust_chain_verification: "ACCEPT_UNTRUSTED" },
            },
          },
          manager: { forward_client_cert_details: mode, set_current_client_cert_details: details },
        },
      ],
    })),
  ];
}

interface Row {
  readonly name: string;
  readonly call: TlsParityCall;
  /** Status of the answer, 0 = refused; and the chain that gave it where the listener has several. */
  readonly expected: number | string;
}

/** One cipher, so that the two servers' tastes do not matter. */
const ciphers = "TLS_AES_128_GCM_SHA256:ECDHE-ECDSA-AES128-GCM-SHA256";
const showing = (identity: TestCertificate | undefined, more: tls.ConnectionOptions = {}): tls.ConnectionOptions => ({
  ciphers,
  ...(identity !== undefined && { cert: identity.certificate, key: identity.key }),
  ...more,
});

function makeRows(identities: Identities): readonly Row[] {
  const { good, many, foreign, expired, early, wrongName, untrusted, selfSigned } = identities;
  const shown = { good, many, foreign, expired, early, wrongName, untrusted, selfSigned, none: undefined };
  const rows: Row[] = [];
  const row = (
    name: string,
    listener: string,
    options: Omit<TlsParityCall, "listener">,
    expected: number | string,
  ): void => void rows.push({ name, call: { listener, ...options }, expected });
  for (const [name, identity] of Object.entries(shown)) {
    const expected = identity === good || identity === many ? 200 : 0;
    row(`certificate required: ${name}`, "mutual", { tls: showing(identity, { servername: "a.example" }) }, expected);
    row(`names compared: ${name}`, "optional", { tls: showing(identity) }, expected);
    row(`TLS 1.2: ${name}`, "mutual", { tls: showing(identity, { maxVersion: "TLSv1.2" }) }, expected);
  }
  row("without an inspector no name is known", "bare", { tls: showing(good, { servername: "A.example" }) }, 200);
  row("another hash", "hash", { tls: showing(good) }, 0);
  row("no certificate to hash", "hash", { tls: showing(undefined) }, 0);
  row("1.2 where 1.3 is asked for", "tls13", { tls: showing(undefined, { maxVersion: "TLSv1.2" }) }, 0);
  row("1.3 where 1.2 is asked for", "tls12", { tls: { minVersion: "TLSv1.3" } }, 0);
  row("no common cipher", "tls12", { tls: { maxVersion: "TLSv1.2", ciphers: "AES128-SHA256" } }, 0);
  row("plain text for TLS", "bare", { tls: false }, 0);
  row("no TLS for TLS", "bare", { tls: false, bytes: Buffer.from("\0\u0001\u0002 and more of this kind") }, 0);
  row("plain text where names are asked for", "names", { tls: false }, 0);
  const served: Readonly<Record<string, string | number>> = {
    "a.example": "exact",
    "A.EXAMPLE": "exact",
    "x.b.example": "wild",
    "b.example": 0,
    "c.example": 0,
  };
  for (const [servername, expected] of Object.entries(served)) {
    row(`chain for ${servername}`, "names", { tls: showing(undefined, { servername }) }, expected);
    row(`certificate for ${servername}`, "certificates", { tls: showing(undefined, { servername }) }, 200);
  }
  row("chain for no name", "names", { tls: showing(undefined) }, 0);
  row("certificate for no name", "certificates", { tls: showing(undefined) }, 200);
  const alpn = (ALPNProtocols: string[], identity?: TestCertificate): Omit<TlsParityCall, "listener"> => ({
    tls: showing(identity, { ALPNProtocols }),
  });
  row("protocols: ours", "protocols", alpn(["h2c", "http/1.1"]), 200);
  row("protocols: none of ours", "protocols", alpn(["other"]), 200);
  row("protocols: none", "protocols", { tls: showing(undefined) }, 200);
  row("permissive: a sidecar", "permissive", alpn(["istio-http/1.1", "istio", "http/1.1"], good), "istio");
  row("permissive: as a sidecar, without a certificate", "permissive", alpn(["istio"]), 0);
  row("permissive: the workload's own TLS", "permissive", alpn(["http/1.1"]), "tls");
  row("permissive: an unknown protocol over TLS", "permissive", alpn(["other"]), "tls");
  row("permissive: TLS without protocols", "permissive", { tls: showing(undefined) }, "tls");
  row("permissive: plain HTTP", "permissive", { tls: false }, "http");
  row(
    "permissive: plain and no HTTP",
    "permissive",
    { tls: false, bytes: Buffer.from("\0 neither of these\r\n") },
    400,
  );
  for (const [name, { hello, chain }] of Object.entries(oddHellos())) {
    row(
      `permissive: ${name}`,
      "permissive",
      { tls: false, bytes: hello, endsOnAnswer: chain !== "raw" },
      chain === "raw" ? 400 : 0,
    );
  }
  const forged = { "x-forwarded-client-cert": 'By=spiffe://x;Hash=1;Subject="a,b"' };
  for (const mode of modes) {
    for (const [name, identity] of Object.entries({ good, many, none: undefined, untrusted })) {
      row(`${mode}: ${name}`, mode, { tls: showing(identity) }, 200);
      row(`${mode}: ${name}, behind another proxy`, mode, { tls: showing(identity), headers: forged }, 200);
    }
  }
  return rows;
}

/** Which chain must take what. All that a server finds fault with later is TLS nevertheless. */
function oddHellos(): Readonly<Record<string, { readonly hello: Buffer; readonly chain: "tls" | "raw" | "none" }>> {
  const name = (text: string): Buffer => serverName(Buffer.from(text, "latin1"));
  const groups = extension(10, Buffer.from([0, 2, 0, 29]));
  const usual = (more: Buffer): Buffer => Buffer.concat([versions(0x0304), groups, more]);
  const hello = (parts: HelloParts): Buffer => helloFrom({ suites: Buffer.from([0x13, 1, 0xc0, 0x2b]), ...parts });
  const padded = (bytes: number): Buffer => hello({ extensions: usual(extension(21, Buffer.alloc(bytes))) });
  return {
    "no extensions": { hello: hello({}), chain: "tls" },
    "a name in records of one byte": {
      hello: inRecordsOf(hello({ extensions: usual(name("A.example")) }), 1),
      chain: "tls",
    },
    "a name": { hello: hello({ extensions: usual(name("A.example")) }), chain: "tls" },
    "15,000 bytes": { hello: padded(15_000), chain: "tls" },
    "17,000 bytes": { hello: padded(17_000), chain: "none" },
    "more in fragments than is read": {
      hello: inRecordsOf(padded(15_000), 3).subarray(0, 17_000),
      chain: "none",
    },
    "two names": { hello: hello({ extensions: usual(Buffer.concat([name("a"), name("b")])) }), chain: "raw" },
    "an empty name": { hello: hello({ extensions: usual(name("")) }), chain: "raw" },
    "a name with a zero byte": { hello: hello({ extensions: usual(name("a\0b")) }), chain: "raw" },
    "a name too long": { hello: hello({ extensions: usual(name("a".repeat(256))) }), chain: "raw" },
    "a version that nobody speaks": {
      hello: hello({ extensions: Buffer.concat([versions(0x0a0a), groups]) }),
      chain: "tls",
    },
    "compression only": { hello: hello({ compressions: Buffer.from([1]) }), chain: "tls" },
    "bytes behind the extensions": {
      hello: hello({ extensions: usual(name("a")), behind: Buffer.from([0]) }),
      chain: "raw",
    },
    "an alert first": { hello: Buffer.from([21, 3, 1, 0, 2, 2, 40, 10]), chain: "raw" },
    "an empty list of protocols": {
      hello: hello({ extensions: usual(extension(16, Buffer.from([0, 0]))) }),
      chain: "tls",
    },
  };
}

/** Where the two libraries or the two proxies have other words for the same. */
function comparable(outcome: TlsParityOutcome): TlsParityOutcome {
  const words = (line: string): string =>
    line
      // Of a plain connection Envoy's inspector says why it was no TLS.
      .replace(/TLS_error\|error:[^\t]*/, "-")
      .replace(/self_signed_certificate|unable_to_get_local_issuer_certificate/, "untrusted")
      .replace(/\d+:SSL_routines:OPENSSL_internal:(NO_SHARED_CIPHER|WRONG_CURVE)/, "no_common_cipher")
      // What a hello lacks is said otherwise.
      .replace(
        /TLS_error:\|\d+:SSL_routines:OPENSSL_internal:(MISSING_SIGALGS_EXTENSION|NO_COMMON_SIGNATURE_ALGORITHMS|BAD_EXTENSION|INVALID_COMPRESSION_LIST|REQUIRED_COMPRESSION_ALGORITHM_MISSING):TLS_error_end/,
        "-",
      )
      .replace(/(DOWNSTREAM_TLS_SESSION_ID=)[0-9a-f]{64}/, "$1<id>");
  return { ...outcome, request: words(outcome.request), connection: words(outcome.connection) };
}

/** Of a refused handshake our line has a flag, where Envoy writes none. */
function withoutOwnFlag(outcome: TlsParityOutcome): TlsParityOutcome {
  const reason = /DOWNSTREAM_TRANSPORT_FAILURE_REASON=([^\t]*)/.exec(outcome.connection)?.[1] ?? "-";
  if (reason === "-") return outcome;
  assert.match(outcome.connection, /RESPONSE_FLAGS=DPE\t/);
  return { ...outcome, connection: outcome.connection.replace("RESPONSE_FLAGS=DPE", "RESPONSE_FLAGS=-") };
}

let pair: TlsParityPair;
let identities: Identities;

before(async () => {
  identities = await makeIdentities();
  pair = await startTlsParityPair(makeListeners(identities), {
    request: format(requestOperators),
    connection: format(connectionOperators),
  });
});

after(() => pair.stop());

test("handshakes, chains, certificates, headers and logs are Envoy's", async (t) => {
  const rows = makeRows(identities);
  const { ours, envoys } = await pair.run(rows.map(({ call }) => call));
  for (const [index, { name, expected }] of rows.entries()) {
    await t.test(name, () => {
      const [own, envoy] = [comparable(withoutOwnFlag(ours[index]!)), comparable(envoys[index]!)];
      assert.deepEqual(own, envoy);
      if (typeof expected === "number") assert.equal(own.status, expected);
      else assert.equal(own.headers["x-chain"], expected);
    });
  }
  const counters = await pair.counters(
    /^listener\.[A-Za-z0-9_]+\.(ssl\.(handshake|no_certificate|fail_verify_\w+|connection_error|session_reused)|ssl\.versions.*|no_filter_chain_match|downstream_cx_total|downstream_listener_filter.*|downstream_pre_cx_timeout)$|^(tls|http)_inspector\.|^http\.(?!admin)\w+\.downstream_cx_total/,
  );
  // A certificate that is let in although it is bad counts as bad there, and here as what it is.
  const isCompared = (stat: string): boolean => !/^listener\.(admin|[A-Z_]+\.ssl\.fail)/.test(stat);
  for (const stat of new Set([...Object.keys(counters.ours), ...Object.keys(counters.envoys)].filter(isCompared))) {
    assert.equal(counters.ours[stat] ?? 0, counters.envoys[stat] ?? 0, stat);
  }
});
