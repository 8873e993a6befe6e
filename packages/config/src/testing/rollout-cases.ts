// What analyzers find about Rollouts.
import { type AnalyzeCase, virtualService } from "./analyzed-mesh.ts";

const rollout = (spec: string, name = "catalog"): string =>
  `---\napiVersion: rollouts.tulle.io/v1alpha1\nkind: Rollout\nmetadata: { name: ${name}, namespace: shop }\nspec: ${spec}\n`;
const versions = "stable: { subset: version-v1 }, canary: { subset: version-v2 }";
const steps = "strategy: { canary: { steps: [{ setWeight: 20 }] } }";

export const rolloutCases: readonly AnalyzeCase[] = [
  { name: "a right Rollout", input: rollout(`{ host: catalog, ${versions}, ${steps} }`), expected: [] },
  {
    name: "a Rollout by labels, over a route of a VirtualService",
    input:
      virtualService("{ hosts: [catalog], http: [{ name: all, route: [{ destination: { host: catalog } }] }] }") +
      rollout(
        `{ host: catalog, stable: { labels: { version: v1 } }, canary: { labels: { version: v2 } }, virtualService: { name: rule, routes: [all] }, ${steps} }`,
      ),
    expected: [],
  },
  {
    name: "IST0101: a Rollout of a host, of subsets and of a VirtualService that are not there",
    input:
      rollout(`{ host: catalgo, ${versions}, ${steps} }`) +
      rollout(
        `{ host: catalog, stable: { subset: version-v1 }, canary: { subset: version-v3 }, virtualService: { name: catalog }, ${steps} }`,
        "other",
      ),
    expected: [
      'Error [IST0101] (Rollout shop/catalog) spec.host: host "catalgo" not found\n  Did you mean "catalog"?',
      'Error [IST0101] (Rollout shop/other) spec.canary.subset: subset "version-v3" of host "catalog.shop.svc.cluster.local" not found\n  Did you mean "version-v1"?',
      'Error [IST0101] (Rollout shop/other) spec.virtualService.name: virtual service "shop/catalog" not found\n  Add it, or leave virtualService out: then the weights are laid over whatever leads to the host.',
    ],
  },
  {
    name: "TUL0014: two Rollouts of one host",
    input:
      rollout(`{ host: catalog, ${versions}, ${steps} }`) +
      rollout(`{ host: catalog.shop, ${versions}, ${steps} }`, "other"),
    expected: [
      'Error [TUL0014] (Rollout shop/other) spec.host: the Rollout "shop/catalog" is of the host "catalog.shop.svc.cluster.local", too; this one does not start\n  Delete one of them.',
    ],
  },
  {
    name: "TUL0015: a Rollout over a VirtualService that does not lead to the host",
    input:
      virtualService("{ hosts: [admin], http: [{ name: a, route: [{ destination: { host: catalog } }] }] }", "named") +
      virtualService("{ hosts: [b.test], http: [{ directResponse: { status: 404 } }] }") +
      rollout(`{ host: catalog, ${versions}, virtualService: { name: rule }, ${steps} }`) +
      rollout(
        `{ host: admin, stable: { labels: { a: b } }, canary: { labels: { a: c } }, virtualService: { name: named, routes: [a, b] }, ${steps} }`,
        "admin",
      ),
    expected: [
      'Error [TUL0015] (Rollout shop/catalog) spec.virtualService.name: the VirtualService "shop/rule" has no route to the host "catalog.shop.svc.cluster.local", so that no weight can be laid over it\n  Name one that leads to the host, or leave virtualService out.',
      /routes\[0\]: .* has a route "a" that does not lead to the host "admin/,
      /routes\[1\]: .* has no route "b" to the host "admin/,
    ],
  },
  {
    name: "TUL0015: a Rollout of connections that counts requests",
    input:
      "---\napiVersion: v1\nkind: Service\nmetadata: { name: db, namespace: shop }\nspec: { selector: { app: db }, ports: [{ name: tcp-db, port: 5432 }] }\n" +
      virtualService("{ hosts: [db], tcp: [{ route: [{ destination: { host: db } }] }] }", "db") +
      rollout(
        `{ host: db, stable: { labels: { v: "1" } }, canary: { labels: { v: "2" } }, virtualService: { name: db }, strategy: { canary: { steps: [{ setWeight: 20 }, { analysis: { metrics: [{ name: rate, successRate: {}, thresholdRange: { min: 99 } }] } }] } } }`,
        "db",
      ),
    expected: [
      'Error [TUL0015] (Rollout shop/db) spec.strategy.canary.steps[1].analysis.metrics[0]: no port of the host "db.shop.svc.cluster.local" speaks HTTP, so that "rate" counts no requests and the roll-out waits there\n  Measure connections by a query of Prometheus, or name the port\'s protocol.',
    ],
  },
  {
    name: "TUL0015: a Prometheus that the operator does not list",
    input: rollout(
      `{ host: catalog, ${versions}, strategy: { canary: { steps: [{ analysis: { metrics: [{ name: q, prometheus: { address: "http://p.test:9090", query: up }, thresholdRange: { min: 1 } }] } }] } } }`,
    ),
    expected: [
      'Error [TUL0015] (Rollout shop/catalog) spec.strategy.canary.steps[0].analysis.metrics[0].prometheus.address: the mesh\'s configuration does not list "http://p.test:9090" in rolloutPrometheusUrls, so that the roll-out pauses there\n  It lists none; the operator adds it.',
    ],
  },
];
