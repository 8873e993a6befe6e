// How many requests each proxy of a shop has seen, by the counters that both proxies have. Tulle's has Istio's besides,
// which have to say the same.
import assert from "node:assert/strict";
import type { RequestCount } from "./shop-instance.ts";

/** A shop on a laptop, or on a cluster. */
export interface CountedShop<Pod> {
  /** The only pod whose name begins so. */
  pod(prefix: string): Promise<Pod>;
  readonly reach: {
    /** A page of the pod's proxy. */
    admin(pod: Pod, target: string): Promise<string>;
  };
  /** `istio_requests_total` of every proxy. */
  requestCounts(): Promise<readonly RequestCount[]>;
}

export interface RequestsOnTheirWay {
  readonly fromGateway: number;
  readonly toWebapp: number;
  /** Without those that were tried again. */
  readonly fromWebapp: number;
  readonly retried: number;
  /** Tries. */
  readonly toCatalog: { readonly v1: number; readonly v2: number };
}

/** All that the proxies have counted until now. */
interface Counts {
  readonly seen: RequestsOnTheirWay;
  readonly told: readonly RequestCount[];
}

const sentTo = (service: string): string => String.raw`^cluster\.outbound\|80\|[^|]*\|${service}[^|]*\.upstream_rq_`;
const taken = String.raw`^cluster\.inbound\|(8080|3000)\|\|\.upstream_rq_total$`;

/** What has come since it was called, by the function that it resolves with. */
export async function countRequests<Pod>(shop: CountedShop<Pod>): Promise<() => Promise<RequestsOnTheirWay>> {
  const earlier = await countsOf(shop);
  return async () => {
    const later = await countsOf(shop);
    const since = (of: (seen: RequestsOnTheirWay) => number): number => of(later.seen) - of(earlier.seen);
    const seen: RequestsOnTheirWay = {
      fromGateway: since(({ fromGateway }) => fromGateway),
      toWebapp: since(({ toWebapp }) => toWebapp),
      fromWebapp: since(({ fromWebapp }) => fromWebapp),
      retried: since(({ retried }) => retried),
      toCatalog: { v1: since(({ toCatalog }) => toCatalog.v1), v2: since(({ toCatalog }) => toCatalog.v2) },
    };
    if (later.told.length > 0) assertToldAlike(seen, earlier.told, later.told);
    return seen;
  };
}

function assertToldAlike(
  { fromGateway, toWebapp, fromWebapp, retried, toCatalog }: RequestsOnTheirWay,
  earlier: readonly RequestCount[],
  later: readonly RequestCount[],
): void {
  const told = (pod: string, reporter: string, service: string, version?: string): number => {
    const isMeant = ({ pod: name, labels }: RequestCount): boolean =>
      name.startsWith(pod) &&
      labels["reporter"] === reporter &&
      labels["destination_service_name"] === service &&
      (version === undefined || labels["destination_version"] === version);
    const sum = (counts: readonly RequestCount[]): number =>
      counts.filter(isMeant).reduce((total, { value }) => total + value, 0);
    return sum(later) - sum(earlier);
  };
  assert.equal(told("tulle-ingressgateway", "source", "webapp"), fromGateway);
  assert.equal(told("webapp", "destination", "webapp"), toWebapp);
  assert.equal(told("webapp", "source", "catalog"), fromWebapp);
  for (const version of ["v1", "v2"] as const) {
    assert.equal(told(`catalog-${version}`, "destination", "catalog"), toCatalog[version], version);
    if (retried === 0) assert.equal(told("webapp", "source", "catalog", version), toCatalog[version], version);
  }
}

async function countsOf<Pod>(shop: CountedShop<Pod>): Promise<Counts> {
  const [fromGateway, toWebapp, tries, retried, v1, v2, told] = await Promise.all([
    statOf(shop, "tulle-ingressgateway", `${sentTo("webapp")}total$`),
    statOf(shop, "webapp", taken),
    statOf(shop, "webapp", `${sentTo("catalog")}total$`),
    statOf(shop, "webapp", `${sentTo("catalog")}retry$`),
    statOf(shop, "catalog-v1", taken),
    statOf(shop, "catalog-v2", taken),
    shop.requestCounts(),
  ]);
  return { seen: { fromGateway, toWebapp, fromWebapp: tries - retried, retried, toCatalog: { v1, v2 } }, told };
}

/** The sum of the counters whose names match, of the only pod whose name begins so. */
export async function statOf<Pod>(shop: CountedShop<Pod>, podPrefix: string, pattern: string): Promise<number> {
  const page = await shop.reach.admin(await shop.pod(podPrefix), `/stats?filter=${encodeURIComponent(pattern)}`);
  return page.split("\n").reduce((sum, line) => sum + Number(/: (\d+)$/.exec(line)?.[1] ?? 0), 0);
}
