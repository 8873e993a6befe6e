// What a pod's annotations make of its capture, and which of them are refused.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAnnotationsFile, planOfAnnotations } from "./capture-annotations.ts";
import { type CaptureSettings, planCapture } from "./capture-plan.ts";

const traffic = "traffic.sidecar.istio.io";

/** The same by settings. */
const plans: readonly (readonly [annotations: Readonly<Record<string, string>>, settings: CaptureSettings])[] = [
  [{}, {}],
  [{ "example.com/other": "x" }, {}],
  [{ [`${traffic}/includeInboundPorts`]: "*" }, {}],
  [{ [`${traffic}/includeInboundPorts`]: "" }, { includeInboundPorts: "" }],
  [{ [`${traffic}/includeInboundPorts`]: "80, 8080" }, { includeInboundPorts: "80,8080" }],
  // Those of the proxy and the platform are kept.
  [{ [`${traffic}/excludeInboundPorts`]: "22" }, { excludeInboundPorts: "22,15020,15021,15090" }],
  [{ [`${traffic}/excludeInboundPorts`]: "" }, {}],
  [{ [`${traffic}/includeOutboundIPRanges`]: "*" }, {}],
  [{ [`${traffic}/includeOutboundIPRanges`]: "" }, { includeOutboundIpRanges: "" }],
  [
    { [`${traffic}/includeOutboundIPRanges`]: "10.96.0.0/12,fd00::/8" },
    { includeOutboundIpRanges: "10.96.0.0/12,fd00::/8" },
  ],
  [{ [`${traffic}/excludeOutboundIPRanges`]: "10.1.2.3/32" }, { excludeOutboundIpRanges: "10.1.2.3" }],
  [{ [`${traffic}/includeOutboundPorts`]: "5432" }, { includeOutboundPorts: "5432" }],
  [{ [`${traffic}/excludeOutboundPorts`]: "25,587" }, { excludeOutboundPorts: "25,587" }],
  [{ [`${traffic}/excludeInterfaces`]: "eth1,net0" }, { excludeInterfaces: "eth1,net0" }],
  [{ [`${traffic}/kubevirtInterfaces`]: "tap0" }, { virtualInterfaces: "tap0" }],
  [{ "istio.io/reroute-virtual-interfaces": "tap0" }, { virtualInterfaces: "tap0" }],
  [{ "sidecar.istio.io/interceptionMode": "REDIRECT" }, {}],
  [{ "sidecar.istio.io/interceptionMode": "TPROXY" }, { mode: "TPROXY" }],
];
for (const [annotations, settings] of plans) {
  test(`${JSON.stringify(annotations)}: ${JSON.stringify(settings)}`, () => {
    assert.deepEqual(planOfAnnotations(annotations), planCapture(settings));
  });
}

test("interceptionMode NONE captures nothing", () => {
  assert.equal(planOfAnnotations({ "sidecar.istio.io/interceptionMode": "NONE" }).plan, "none");
});

const refused: readonly (readonly [name: string, value: string, message: RegExp])[] = [
  [`${traffic}/includeInboundPorts`, "80,http", /"http" is not a port/],
  [`${traffic}/excludeInboundPorts`, "*", /"\*" among others/],
  [`${traffic}/excludeInboundPorts`, "65536", /is not a port/],
  [`${traffic}/excludeInboundPorts`, "80,", /a comma/],
  [`${traffic}/includeOutboundIPRanges`, "10.0.0.1", /no length of a prefix/],
  [`${traffic}/includeOutboundIPRanges`, "10.0.0.0/33", /is no range/],
  [`${traffic}/includeOutboundIPRanges`, "*,10.0.0.0/8", /"\*" among others/],
  [`${traffic}/excludeOutboundIPRanges`, "example.com", /no length of a prefix/],
  [`${traffic}/excludeOutboundIPRanges`, "*", /"\*" among others/],
  [`${traffic}/includeOutboundPorts`, "-1", /is not a port/],
  [`${traffic}/excludeOutboundPorts`, "1;flush ruleset", /is not a port/],
  [`${traffic}/excludeInterfaces`, "eth0 eth1", /no name of a network interface/],
  [`${traffic}/kubevirtInterfaces`, 'tap0"; flush', /no name of a network interface/],
  ["sidecar.istio.io/interceptionMode", "redirect", /is "redirect", not REDIRECT, TPROXY or NONE/],
];
for (const [name, value, message] of refused) {
  test(`${name} ${JSON.stringify(value)} is refused`, () => {
    const { plan, problems } = planOfAnnotations({ [name]: value });
    assert.equal(plan, undefined);
    assert.deepEqual(problems[0]?.place, { annotation: name });
    assert.match(problems.map((problem) => problem.message).join("\n"), message);
  });
}

test("all that is wrong is told at once, and a setting comes before an annotation", () => {
  const annotations = {
    [`${traffic}/includeInboundPorts`]: "x",
    [`${traffic}/excludeOutboundPorts`]: "y",
    "sidecar.istio.io/interceptionMode": "TPROXY",
  };
  assert.equal(planOfAnnotations(annotations).problems.length, 2);
  const settings = { includeInboundPorts: "80", excludeOutboundPorts: "25", mode: "REDIRECT" } as const;
  assert.deepEqual(planOfAnnotations(annotations, settings), planCapture(settings));
  assert.deepEqual(planOfAnnotations({}, { proxyUid: "x" }).problems[0]?.place, { setting: "proxyUid" });
});

test("a file of a downwardAPI volume is read", () => {
  const text = `kubernetes.io/config.seen="2026-11-28T08:00:00Z"
note="an \\x07 of others"
${traffic}/excludeOutboundPorts="25,587"
${traffic}/includeInboundPorts=""
`;
  assert.deepEqual(parseAnnotationsFile(text), {
    [`${traffic}/excludeOutboundPorts`]: "25,587",
    [`${traffic}/includeInboundPorts`]: "",
  });
  assert.throws(
    () => parseAnnotationsFile(`${traffic}/includeInboundPorts=80`),
    /includeInboundPorts has no quoted value/,
  );
});
