// The status listing as text: Istio's columns, reasons below, and what a narrow terminal gets.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProxySync } from "@tulle/config/api";
import { statusText } from "./proxy-status.ts";

function row(proxy: string, lds: "SYNCED" | "ERROR", message?: string): ProxySync {
  const synced = { state: "SYNCED", sent: "1", acked: "1", errors: [] } as const;
  const errors = message === undefined ? [] : [{ resource: "0.0.0.0_9000", message, at: "2026-11-20T12:00:00.000Z" }];
  const none = { state: "NOT SENT", sent: "", acked: "", errors: [] } as const;
  const types = { CDS: synced, LDS: { ...synced, state: lds, errors }, EDS: synced, RDS: none, ECDS: none };
  return { proxy, cluster_id: "local", tulled: "tulled-x2k4p", istio_version: "0.1.0", types } as unknown as ProxySync;
}

const rows = [row("gateway-1.tulle-system", "ERROR", "cannot bind '127.9.9.2:9000'\n"), row("web-1.shop", "SYNCED")];

const wide = `NAME                       CLUSTER     CDS        LDS        EDS        RDS          ECDS         TULLED           VERSION
gateway-1.tulle-system     local       SYNCED     ERROR      SYNCED     NOT SENT     NOT SENT     tulled-x2k4p     0.1.0
web-1.shop                 local       SYNCED     SYNCED     SYNCED     NOT SENT     NOT SENT     tulled-x2k4p     0.1.0
`;
const closer = `NAME                    CLUSTER  CDS     LDS     EDS     RDS       ECDS      TULLED        VERSION
gateway-1.tulle-system  local    SYNCED  ERROR   SYNCED  NOT SENT  NOT SENT  tulled-x2k4p  0.1.0
web-1.shop              local    SYNCED  SYNCED  SYNCED  NOT SENT  NOT SENT  tulled-x2k4p  0.1.0
`;
const paragraphs = `gateway-1.tulle-system
  CLUSTER  local
  CDS      SYNCED
  LDS      ERROR
  EDS      SYNCED
  RDS      NOT SENT
  ECDS     NOT SENT
  TULLED   tulled-x2k4p
  VERSION  0.1.0

web-1.shop
  CLUSTER  local
  CDS      SYNCED
  LDS      SYNCED
  EDS      SYNCED
  RDS      NOT SENT
  ECDS     NOT SENT
  TULLED   tulled-x2k4p
  VERSION  0.1.0
`;
const reason = "\ngateway-1.tulle-system LDS ERROR 0.0.0.0_9000: cannot bind '127.9.9.2:9000'\n";

const cases: readonly { name: string; rows: readonly ProxySync[]; columns: number | undefined; expected: string }[] = [
  { name: "no terminal", rows, columns: undefined, expected: wide + reason },
  { name: "a wide terminal", rows, columns: 140, expected: wide + reason },
  { name: "a narrower terminal", rows, columns: 100, expected: closer + reason },
  { name: "a narrow terminal", rows, columns: 40, expected: paragraphs + reason },
  {
    name: "a proxy that came in the clear to a mesh with certificates",
    rows: [rows[0]!, { ...rows[1]!, withoutCertificate: true }],
    columns: 100,
    expected: `${closer}
web-1.shop has no certificate: it speaks plain text, and nothing where mutual TLS is asked for
${reason.trimStart()}`,
  },
  { name: "no proxies", rows: [], columns: undefined, expected: "No proxies are connected.\n" },
];

for (const { name, rows: given, columns, expected } of cases) {
  test(name, () => assert.equal(statusText(given, columns), expected));
}
