/** What has to go together in a traffic policy, by the rules of Istio's validation (Istio 1.31). */
import type { Report } from "../schema/schema.ts";
import { quote } from "../schema/formats.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Istio refuses an object that is there and says nothing. */
export function saysSomething(name: string, apartFrom: readonly string[] = []) {
  return (value: Fields, report: Report): void => {
    const isSaid = ([field, each]: readonly [string, unknown]): boolean =>
      each !== undefined && !(Array.isArray(each) && each.length === 0) && !apartFrom.includes(field);
    if (Object.entries(value).some(isSaid)) return;
    report({ message: `the ${name} says nothing`, suggestion: "Leave it out, or write what it is to change." });
  };
}

export function tunnelAlone(
  policy: { readonly tunnel?: unknown; readonly proxyProtocol?: unknown },
  report: Report,
): void {
  if (policy.tunnel === undefined || policy.proxyProtocol === undefined) return;
  report({ path: ["proxyProtocol"], message: '"tunnel" and "proxyProtocol" cannot stand together' });
}

export function localErrorsAreSplit(
  outlier: { readonly splitExternalLocalOriginErrors?: boolean; readonly consecutiveLocalOriginFailures?: number },
  report: Report,
): void {
  if (outlier.splitExternalLocalOriginErrors === true || (outlier.consecutiveLocalOriginFailures ?? 0) === 0) return;
  report({
    path: ["consecutiveLocalOriginFailures"],
    message: "connection failures are not counted apart, so that a number of them has no effect",
    suggestion: 'Add "splitExternalLocalOriginErrors: true".',
  });
}

export function protocolIsClear(
  http: { readonly h2UpgradePolicy?: string; readonly useClientProtocol?: boolean },
  report: Report,
): void {
  if (http.h2UpgradePolicy !== "UPGRADE" || http.useClientProtocol !== true) return;
  report({
    path: ["useClientProtocol"],
    message: '"useClientProtocol" keeps the client\'s protocol, and "h2UpgradePolicy" changes it',
  });
}

export function attributesDiffer(attributes: readonly { readonly name: string }[] | undefined, report: Report): void {
  const seen = new Set<string>();
  attributes?.forEach(({ name }, index) => {
    if (seen.has(name)) report({ path: ["attributes", index, "name"], message: `${quote(name)} is there twice` });
    seen.add(name);
  });
}

/** Envoy takes no other sizes of a Maglev table. */
const maxTableSize = 5_000_010;

export function tableFits({ tableSize = 0 }: { readonly tableSize?: number }, report: Report): void {
  if (tableSize > 0 && tableSize <= maxTableSize && isPrime(tableSize)) return;
  report({ path: ["tableSize"], message: `${tableSize} is not a prime number from 2 to ${maxTableSize}` });
}

function isPrime(size: number): boolean {
  // As Envoy counts, 1 is one.
  if (size < 4) return true;
  if (size % 2 === 0) return false;
  for (let factor = 3; factor * factor <= size; factor += 2) if (size % factor === 0) return false;
  return true;
}

export function ringIsSaidOnce(
  hash: { readonly minimumRingSize?: number; readonly ringHash?: unknown; readonly maglev?: unknown },
  report: Report,
): void {
  if ((hash.minimumRingSize ?? 0) === 0 || (hash.ringHash ?? hash.maglev) === undefined) return;
  report({ path: ["minimumRingSize"], message: '"minimumRingSize" cannot stand beside "ringHash" or "maglev"' });
}

export function localityOrZone(
  balancer: { readonly localityLbSetting?: unknown; readonly zoneAwareLbSetting?: unknown },
  report: Report,
): void {
  if (balancer.localityLbSetting === undefined || balancer.zoneAwareLbSetting === undefined) return;
  report({
    path: ["zoneAwareLbSetting"],
    message: 'only one of "localityLbSetting", "zoneAwareLbSetting" is possible',
  });
}

interface Locality {
  readonly distribute?: readonly { readonly from?: string; readonly to?: Readonly<Record<string, number>> }[];
  readonly failover?: readonly { readonly from?: string; readonly to?: string }[];
  readonly failoverPriority?: readonly string[];
}

const topologyLabels: readonly string[] = [
  "topology.kubernetes.io/region",
  "topology.kubernetes.io/zone",
  "topology.istio.io/subzone",
];

export function localitiesFit(
  { distribute = [], failover = [], failoverPriority = [] }: Locality,
  report: Report,
): void {
  if (distribute.length > 0 && failover.length > 0) {
    report({ path: ["failover"], message: 'only one of "distribute", "failover" is possible' });
  }
  const topology = failoverPriority.findIndex((label) => topologyLabels.includes(label));
  if (failover.length > 0 && topology !== -1) {
    report({
      path: ["failoverPriority", topology],
      message: `${failoverPriority[topology]} cannot stand beside "failover"`,
    });
  }
  distribute.forEach(({ to = {} }, index) => {
    const shares = Object.values(to);
    const total = shares.reduce((sum, share) => sum + share, 0);
    const path = ["distribute", index, "to"];
    if (total !== 100 || shares.includes(0)) {
      report({ path, message: `the shares are to be from 1 to 100 and 100 together; they are ${shares.join(", ")}` });
    }
    reportOverlap(Object.keys(to), path, report);
  });
  reportOverlap(
    distribute.map(({ from = "" }) => from),
    ["distribute"],
    report,
  );
  regionsFit(failover, report);
}

export function regionsFit(failover: NonNullable<Locality["failover"]>, report: Report): void {
  failover.forEach(({ from = "", to = "" }, index) => {
    if (from === to) report({ path: ["failover", index], message: "the two regions are the same" });
    if (/[/*]/.test(from + to)) {
      report({ path: ["failover", index], message: 'a failover names regions alone, without "/" and "*"' });
    }
  });
}

/**
 * `region`, `region/zone` or `region/zone/sub-zone`, of which the last part may be `*`; none may be a part of another.
 */
function reportOverlap(localities: readonly string[], path: readonly (string | number)[], report: Report): void {
  // Of those before, the first with this name, and the first that lies within it.
  const named = new Map<string, number>();
  const within = new Map<string, number>();
  const names: string[] = [];
  for (const locality of localities) {
    const parts = splitLocality(locality);
    if (parts.includes("") || /\*./.test(locality) || parts.some((part) => part !== "*" && part.includes("*"))) {
      report({ path, message: `${quote(locality)} is not a locality as "region/zone/sub-zone" or "region/*"` });
      continue;
    }
    const own = parts.filter((part) => part !== "*");
    const around = own.map((_, index) => own.slice(0, index + 1).join("/"));
    const name = around.at(-1) ?? "";
    const found = ["", ...around].map((each) => named.get(each)).concat(within.get(name));
    const first = Math.min(...found.map((index) => index ?? Infinity));
    if (first !== Infinity) {
      report({ path, message: `${quote(locality)} overlaps ${quote(names[first] || "*")}` });
    }
    if (!named.has(name)) named.set(name, names.length);
    for (const each of ["", ...around]) if (!within.has(each)) within.set(each, names.length);
    names.push(name);
  }
}

function splitLocality(locality: string): string[] {
  const [region = "", zone, ...subZone] = locality.split("/");
  return [region, ...(zone === undefined ? [] : [zone]), ...(subZone.length === 0 ? [] : [subZone.join("/")])];
}
