/** Which PeerAuthentication decides, as Istio's order has it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadText } from "../load/load.ts";
import { modeOfPort, mutualTlsModes, peerAuthenticationScope } from "./mutual-tls-mode.ts";

const policy = (namespace: string, spec: string, name = "a"): string =>
  `---\n{ apiVersion: security.istio.io/v1, kind: PeerAuthentication, metadata: { name: ${name}, namespace: ${namespace} }, spec: ${spec} }\n`;
const selected = "selector: { matchLabels: { app: catalog } }";

const cases: readonly {
  readonly name: string;
  readonly input: string;
  /** Of the port 3000, and of any other. */
  readonly expected: readonly [string, string];
}[] = [
  { name: "nothing said", input: "", expected: ["PERMISSIVE", "PERMISSIVE"] },
  { name: "mesh", input: policy("tulle-system", "{ mtls: { mode: STRICT } }"), expected: ["STRICT", "STRICT"] },
  {
    name: "mesh, in Istio's root namespace",
    input: policy("istio-system", "{ mtls: { mode: STRICT } }"),
    expected: ["STRICT", "STRICT"],
  },
  {
    name: "namespace over mesh",
    input: policy("tulle-system", "{ mtls: { mode: STRICT } }") + policy("shop", "{ mtls: { mode: DISABLE } }"),
    expected: ["DISABLE", "DISABLE"],
  },
  {
    name: "UNSET and empty policies inherit",
    input:
      policy("tulle-system", "{ mtls: { mode: STRICT } }") +
      policy("shop", "{ mtls: { mode: UNSET } }") +
      policy("shop", `{ ${selected} }`, "b"),
    expected: ["STRICT", "STRICT"],
  },
  {
    name: "workload over namespace, port over workload",
    input:
      policy("shop", "{ mtls: { mode: DISABLE } }") +
      policy("shop", `{ ${selected}, mtls: { mode: STRICT }, portLevelMtls: { 3000: { mode: PERMISSIVE } } }`, "b"),
    expected: ["PERMISSIVE", "STRICT"],
  },
  {
    name: "a port alone; the others inherit",
    input:
      policy("tulle-system", "{ mtls: { mode: STRICT } }") +
      policy("shop", `{ ${selected}, portLevelMtls: { 3000: { mode: DISABLE } } }`),
    expected: ["DISABLE", "STRICT"],
  },
  {
    name: "a port that is UNSET has the mode of its workload",
    input: policy("shop", `{ ${selected}, mtls: { mode: STRICT }, portLevelMtls: { 3000: { mode: UNSET } } }`),
    expected: ["STRICT", "STRICT"],
  },
  {
    name: "the older one of two",
    input: policy("shop", "{ mtls: { mode: STRICT } }") + policy("shop", "{ mtls: { mode: DISABLE } }", "b"),
    expected: ["STRICT", "STRICT"],
  },
  {
    name: "the older one of two for the same labels, ports included",
    input:
      policy("shop", `{ ${selected} }`) +
      policy("shop", `{ ${selected}, mtls: { mode: STRICT }, portLevelMtls: { 3000: { mode: DISABLE } } }`, "b"),
    expected: ["PERMISSIVE", "PERMISSIVE"],
  },
  {
    name: "other labels, another namespace, a selector in a root namespace",
    input:
      policy("shop", "{ selector: { matchLabels: { app: orders } }, mtls: { mode: STRICT } }") +
      policy("elsewhere", "{ mtls: { mode: STRICT } }") +
      policy("tulle-system", `{ ${selected}, mtls: { mode: STRICT } }`),
    expected: ["PERMISSIVE", "PERMISSIVE"],
  },
];

for (const { name, input, expected } of cases) {
  test(`mode of mutual TLS: ${name}`, () => {
    const { resources, findings } = loadText(input, "policies.yaml");
    assert.deepEqual(findings, []);
    const policies = resources.flatMap((each) =>
      each.kind === "PeerAuthentication" ? [peerAuthenticationScope(each)] : [],
    );
    const modes = mutualTlsModes(policies, { namespace: "shop", labels: { app: "catalog", version: "v1" } });
    assert.deepEqual([modeOfPort(modes, 3000), modeOfPort(modes, 9090)], expected);
  });
}
