// What the authority's listing says in each phase of a change of root.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AuthorityStatus } from "@tulle/control-plane";
import { authorityText } from "./ca-show.ts";

const certificate = (subject: string, serial: string) => ({
  subject,
  serial,
  notBefore: "2026-11-20T12:00:00.000Z",
  notAfter: "2036-11-17T12:00:00.000Z",
});
const table = `ROLE     SUBJECT                           SERIAL  VALID UNTIL
signs    O=cluster.local, CN=Intermediate  01      2036-11-17
trusted  O=cluster.local, CN=Root          02      2036-11-17
`;
const base = {
  trustDomain: "cluster.local",
  isBroughtAlong: false,
  signing: certificate("O=cluster.local, CN=Intermediate", "01"),
  roots: [certificate("O=cluster.local, CN=Root", "02")],
};
const phaseEnds = "2026-11-21T12:00:00.000Z";

const cases: readonly { readonly name: string; readonly status: AuthorityStatus; readonly expected: string }[] = [
  { name: "steady", status: { ...base, phase: "steady" }, expected: "The authority is the mesh's own." },
  {
    name: "steady, of the user",
    status: { ...base, phase: "steady", isBroughtAlong: true },
    expected: "The authority is yours (cacerts).",
  },
  {
    name: "introducing",
    status: { ...base, phase: "introducing", phaseEnds },
    expected: "New roots are being made known; the new authority signs from 2026-11-21T12:00:00.000Z.",
  },
  {
    name: "retiring",
    status: { ...base, phase: "retiring", phaseEnds },
    expected: "The new authority signs; the old roots are trusted until 2026-11-21T12:00:00.000Z.",
  },
];

for (const { name, status, expected } of cases) {
  test(name, () => {
    assert.equal(authorityText(status, undefined), `Trust domain cluster.local. ${expected}\n\n${table}`);
  });
}
