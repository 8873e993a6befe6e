// Lists of one resource that are as long as an API server takes them: what is compared within them is bounded, since
// whoever may write one resource, or reaches the webhooks, would hold up the control plane for minutes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { analyze } from "../analyzers/analyze.ts";
import { parseResource } from "./parse-resource.ts";

const items = 20_000;
const listOf = <T>(make: (index: number) => T): readonly T[] =>
  Array.from({ length: items }, (_, index) => make(index));
const route = [{ destination: { host: "a" } }];
/** Each took more than 40 s. */
const mostMs = 10_000;

const rows: readonly { readonly name: string; readonly kind: string; readonly spec: object }[] = [
  {
    name: "conditions of one route",
    kind: "VirtualService",
    spec: {
      hosts: ["a.com"],
      http: [
        {
          match: listOf((index) => ({ uri: { exact: `/${index}` }, headers: { [`h${index}`]: { exact: "a" } } })),
          route,
        },
      ],
    },
  },
  {
    name: "localities of a DestinationRule",
    kind: "DestinationRule",
    spec: {
      host: "a",
      trafficPolicy: {
        loadBalancer: {
          localityLbSetting: { distribute: listOf((index) => ({ from: `r${index}`, to: { [`r${index}`]: 100 } })) },
        },
        outlierDetection: {},
      },
    },
  },
];

for (const { name, kind, spec } of rows) {
  test(`${items} ${name} are looked at in a short time`, () => {
    const begin = performance.now();
    const metadata = { name: "a", namespace: "shop" };
    const { resource } = parseResource({ apiVersion: "networking.tulle.io/v1", kind, metadata, spec });
    assert.ok(resource !== undefined);
    analyze([resource]);
    assert.ok(performance.now() - begin < mostMs);
  });
}
