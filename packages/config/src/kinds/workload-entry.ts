/**
 * WorkloadEntry: a workload that is no pod, at an address of its own. Field list of Istio 1.31; endpoints of
 * ServiceEntries and templates of WorkloadGroups have the same fields.
 */
import { isIP } from "node:net";
import { integer, list, map, object, optional, required, string } from "../schema/schema.ts";
import type { ObjectValue, Report } from "../schema/schema.ts";
import { dnsLabel, dnsSubdomain, hostName, quote } from "../schema/formats.ts";
import type { Format } from "../schema/formats.ts";
import { labelKey, labelValue } from "../schema/label-formats.ts";
import { conditions } from "./conditions.ts";
import { noDryRun } from "./dry-run.ts";
import { defineKind, networkingApiVersions } from "./definition.ts";
import { subdomainNamedMetadata } from "./metadata.ts";

const socketPrefix = "unix://";

/** What stands in an `address`; sockets are known, so that they can be refused with words. */
const workloadAddress: Format = {
  name: "address",
  description: "an IP address, or a DNS name where names are looked up",
  check: (value) =>
    value === "" || isIP(value) > 0 || value.startsWith(socketPrefix) || hostName.check(value) === undefined
      ? undefined
      : `${quote(value)} is neither an IP address nor a DNS name`,
  jsonSchema: { maxLength: 256 },
};

/** `region/zone/subzone`, from which the end may be missing. */
const locality: Format = {
  name: "locality",
  description: 'region, zone and subzone joined by "/", the narrower ones optional',
  check: (value) =>
    value.split("/").length <= 3 ? undefined : `${quote(value)} has more parts than region, zone and subzone`,
  jsonSchema: { maxLength: 2048 },
};

/** The largest weight that Envoy's field holds. */
const maxWeight = 4_294_967_295;

export const workloadFields = {
  address: optional(string(workloadAddress), "Address, or a name where the ServiceEntry's resolution is by DNS."),
  ports: optional(
    map(integer({ minimum: 1, maximum: 65_535 }), dnsLabel),
    "Ports by the names of the Service's; the Service's `targetPort`, else its port, when missing.",
  ),
  labels: optional(map(string(labelValue), labelKey), "Labels, which selectors and subsets choose by."),
  network: optional(
    string(),
    "Network of the address. Proxies of other networks reach it by that one's gateway, where there is one.",
  ),
  locality: optional(string(locality), "Where it runs: `region/zone/subzone`."),
  weight: optional(integer({ minimum: 0, maximum: maxWeight }), "Its share beside the others; 1 when missing."),
  serviceAccount: optional(
    string(dnsSubdomain),
    "Service account of its namespace, whose certificate it shows. Callers in the mesh then speak mutual TLS with it.",
  ),
} as const;

export type WorkloadSpec = ObjectValue<typeof workloadFields>;

/** Istio takes sockets of the proxy's machine; nothing here reaches one. */
export function reachable({ address = "", network = "" }: WorkloadSpec, report: Report): void {
  if (address.startsWith(socketPrefix)) {
    report({
      code: "TUL0001",
      severity: "error",
      path: ["address"],
      message: "sockets of the proxy's machine are not implemented yet: nobody would reach it",
      suggestion: "Write an IP address.",
    });
  }
  if (address === "" && network === "") report({ path: ["address"], message: "an address is required" });
}

export const workloadEndpoints = list(object(workloadFields, { rules: [reachable] }));

/** Whether an address is one, and no name. */
export function isAddress(text: string): boolean {
  return isIP(text) > 0;
}

/** A WorkloadEntry with a name is for entries that look names up, which choose none yet. */
function hasAddress({ address = "" }: WorkloadSpec, report: Report): void {
  if (address === "" || isAddress(address) || address.startsWith(socketPrefix)) return;
  report({
    code: "TUL0001",
    path: ["address"],
    message: `${quote(address)} is a name, and names of WorkloadEntries are not implemented yet: nobody reaches it`,
    suggestion: "Write its IP address, or the name into the `endpoints` of a ServiceEntry with `resolution: DNS`.",
  });
}

const entryStatus = object(
  { conditions: conditions("Healthy") },
  { unread: ["validationMessages", "observedGeneration"] },
);

export const workloadEntry = defineKind({
  kind: "WorkloadEntry",
  plural: "workloadentries",
  shortNames: ["we"],
  apiVersions: networkingApiVersions,
  scope: "Namespaced",
  affects: "endpoints",
  writtenBy: "user",
  unknownField: "error",
  description: "A workload that is no pod.",
  schema: object(
    {
      metadata: required(
        subdomainNamedMetadata,
        "Metadata; its labels count besides those of the spec, and before them.",
      ),
      spec: required(object(workloadFields, { rules: [reachable, hasAddress] }), "The workload."),
      status: optional(entryStatus, "Whether it is healthy, as a machine that has joined tells."),
    },
    { rules: [noDryRun] },
  ),
});
