// What analyzers find about hosts, routes, gateways and what two rules say of the same.
import { type AnalyzeCase, virtualService, routeTo, gateway } from "./analyzed-mesh.ts";

export const routingCases: readonly AnalyzeCase[] = [
  { name: "a right mesh", input: "", expected: [] },
  {
    name: "every spelling of a host",
    input: virtualService(
      "{ hosts: [catalog], http: [{ route: [{ destination: { host: catalog }, weight: 1 }, { destination: { host: catalog.shop }, weight: 1 }, { destination: { host: catalog.shop.svc }, weight: 1 }, { destination: { host: catalog.shop.svc.cluster.local, subset: version-v1 }, weight: 1 }] }] }",
    ),
    expected: [],
  },
  {
    name: "IST0101: unknown host, near",
    input: routeTo("{ host: catalgo }"),
    expected: [
      'Error [IST0101] (VirtualService shop/rule) spec.http[0].route[0].destination.host: host "catalgo" not found\n  Did you mean "catalog"?',
    ],
  },
  {
    name: "IST0101: host in another namespace",
    input: routeTo("{ host: gateway }"),
    expected: [
      'Error [IST0101] (VirtualService shop/rule) spec.http[0].route[0].destination.host: host "gateway" not found\n  There is a Service "gateway" in the namespace "tulle-system": write "gateway.tulle-system.svc.cluster.local".',
    ],
  },
  {
    name: "IST0101: unknown subset, near",
    input: routeTo("{ host: catalog, subset: version-v3 }"),
    expected: [
      'Error [IST0101] (VirtualService shop/rule) spec.http[0].route[0].destination.subset: subset "version-v3" of host "catalog.shop.svc.cluster.local" not found\n  Did you mean "version-v1"?',
    ],
  },
  {
    name: "IST0101: subset of a rule that nobody who follows the routes sees",
    input: `${routeTo("{ host: gateway.tulle-system, subset: v1 }")}---
apiVersion: networking.tulle.io/v1
kind: DestinationRule
metadata: { name: gateway, namespace: tulle-system }
spec: { host: gateway, exportTo: [other], subsets: [{ name: v1, labels: { tulle: ingressgateway } }] }
---
apiVersion: networking.tulle.io/v1
kind: VirtualService
metadata: { name: theirs, namespace: other }
spec: { hosts: [a.example.com], http: [{ route: [{ destination: { host: gateway.tulle-system, subset: v1 } }] }] }
`.replace("hosts: [catalog]", "hosts: [catalog], exportTo: ['.']"),
    expected: [
      'Error [IST0101] (VirtualService shop/rule) spec.http[0].route[0].destination.subset: subset "v1" of host "gateway.tulle-system.svc.cluster.local" not found\n  The DestinationRule "tulle-system/gateway" names it, and no namespace that follows these routes sees that one: change its exportTo.',
    ],
  },
  {
    name: "IST0101: subset of a host without rule",
    input: routeTo("{ host: gateway.tulle-system, subset: v1 }"),
    expected: [
      'Error [IST0101] (VirtualService shop/rule) spec.http[0].route[0].destination.subset: subset "v1" of host "gateway.tulle-system.svc.cluster.local" not found\n  Add a DestinationRule for the host that names the subset.',
    ],
  },
  {
    name: "IST0101: unknown port; IST0112: several ports and none named",
    input: virtualService(
      "{ hosts: [catalog], http: [{ route: [{ destination: { host: catalog, port: { number: 81 } }, weight: 1 }, { destination: { host: admin }, weight: 1 }] }] }",
    ),
    expected: [
      'Error [IST0101] (VirtualService shop/rule) spec.http[0].route[0].destination.port.number: port 81 of host "catalog" not found\n  Ports of the Service: 80.',
      'Error [IST0112] (VirtualService shop/rule) spec.http[0].route[1].destination.host: the Service "admin" has several ports (80, 9090), and the destination names none\n  Add port.number to the destination.',
    ],
  },
  {
    name: "IST0101: a rule for a service that is not there is only a warning",
    input:
      "---\napiVersion: networking.tulle.io/v1\nkind: DestinationRule\nmetadata: { name: r, namespace: shop }\nspec: { host: api.example.com }\n",
    expected: [
      'Warning [IST0101] (DestinationRule shop/r) spec.host: host "api.example.com" not found\n  Add a Service of that name.',
    ],
  },
  {
    name: "IST0101: unknown gateways",
    input: virtualService(
      "{ hosts: [shop.example.com], gateways: [public, shop/public, publik, other/public], http: [{ route: [{ destination: { host: catalog } }] }] }",
    ),
    expected: [
      'Error [IST0101] (VirtualService shop/rule) spec.gateways[2]: gateway "shop/publik" not found\n  Did you mean "shop/public"?',
      'Error [IST0101] (VirtualService shop/rule) spec.gateways[3]: gateway "other/public" not found\n  Did you mean "shop/public"?',
    ],
  },
  {
    name: "IST0101: a Gateway that chooses no pods",
    input: gateway("g", "{ port: { number: 80, name: a, protocol: HTTP }, hosts: [a.b] }", "istio: egressgateway"),
    expected: [
      "Error [IST0101] (Gateway shop/g) spec.selector: no workload has the labels of the selector (istio=egressgateway)\n  Compare them with the labels of the gateway's pods.",
    ],
  },
  {
    name: "IST0162: a port that the gateway's Service lacks",
    input: gateway("g", "{ port: { number: 8080, name: a, protocol: HTTP }, hosts: [a.b] }"),
    expected: [
      "Warning [IST0162] (Gateway shop/g) spec.servers[0].port.number: port 8080 is not a port of the gateway's Service (tulle-system/gateway)\n  Add it to the Service, or use one of its ports: 80.",
    ],
  },
  {
    name: "IST0132: a host that the gateway does not serve",
    input: virtualService(
      "{ hosts: [shop.example.com, '*.test', other.example.com], gateways: [public], http: [{ route: [{ destination: { host: catalog } }] }] }",
    ),
    expected: [
      'Warning [IST0132] (VirtualService shop/rule) spec.hosts[2]: host "other.example.com" is not among the hosts of the gateway "shop/public"\n  The Gateway serves shop.example.com, *.test.',
    ],
  },
  {
    name: "IST0132: each of two gateways serves one host, a third serves none",
    input:
      gateway("g", "{ port: { number: 80, name: a, protocol: HTTP }, hosts: ['x.org'] }") +
      gateway("h", "{ port: { number: 80, name: a, protocol: HTTP }, hosts: ['z.org'] }") +
      virtualService(
        "{ hosts: [a.test, x.org], gateways: [public, g, h], http: [{ route: [{ destination: { host: catalog } }] }] }",
      ),
    expected: [
      'Warning [IST0132] (VirtualService shop/rule) spec.gateways[2]: the gateway "shop/h" serves none of the hosts\n  The Gateway serves z.org.',
    ],
  },
  {
    name: "IST0132: a gateway for other namespaces",
    input:
      gateway("g", "{ port: { number: 80, name: a, protocol: HTTP }, hosts: ['bar/*', './x.org'] }") +
      virtualService(
        "{ hosts: [x.org, y.org], gateways: [g], http: [{ route: [{ destination: { host: catalog } }] }] }",
      ),
    expected: [
      'Warning [IST0132] (VirtualService shop/rule) spec.hosts[1]: host "y.org" is not among the hosts of the gateway "shop/g"\n  The Gateway serves x.org.',
    ],
  },
  {
    name: "IST0109: one host in two VirtualServices for sidecars; at gateways it is fine",
    input:
      virtualService("{ hosts: [catalog], http: [{ route: [{ destination: { host: catalog } }] }] }", "a") +
      virtualService(
        "{ hosts: [catalog.shop], gateways: [mesh, public], http: [{ route: [{ destination: { host: catalog } }] }] }",
        "b",
      ) +
      virtualService(
        "{ hosts: [a.test], gateways: [public], http: [{ route: [{ destination: { host: catalog } }] }] }",
        "c",
      ) +
      virtualService(
        "{ hosts: [a.test], gateways: [public], http: [{ route: [{ destination: { host: catalog } }] }] }",
        "d",
      ),
    expected: [
      'Warning [IST0132] (VirtualService shop/b) spec.hosts[0]: host "catalog.shop" is not among the hosts of the gateway "shop/public"\n  The Gateway serves shop.example.com, *.test.',
      'Error [IST0109] (VirtualService shop/a) spec.hosts[0]: the host "catalog.shop.svc.cluster.local" is claimed by several VirtualServices: shop/a, shop/b\n  Put the routes into one VirtualService.',
      'Error [IST0109] (VirtualService shop/b) spec.hosts[0]: the host "catalog.shop.svc.cluster.local" is claimed by several VirtualServices: shop/a, shop/b\n  Put the routes into one VirtualService.',
    ],
  },
  {
    name: "IST0109: one host in VirtualServices that no namespace sees together, and in one that all see",
    input:
      virtualService(
        "{ hosts: [catalog], exportTo: ['.'], http: [{ route: [{ destination: { host: catalog } }] }] }",
        "a",
      ) +
      virtualService(
        "{ hosts: [catalog], exportTo: [blog], http: [{ route: [{ destination: { host: catalog } }] }] }",
        "b",
      ) +
      virtualService(
        "{ hosts: [catalog], exportTo: [nowhere], http: [{ route: [{ destination: { host: catalog } }] }] }",
        "c",
      ) +
      virtualService("{ hosts: [a.test], http: [{ route: [{ destination: { host: catalog } }] }] }", "d") +
      virtualService(
        "{ hosts: [a.test], exportTo: [blog, '.'], http: [{ route: [{ destination: { host: catalog } }] }] }",
        "e",
      ),
    expected: [
      'Error [IST0109] (VirtualService shop/d) spec.hosts[0]: the host "a.test" is claimed by several VirtualServices: shop/d, shop/e\n  Put the routes into one VirtualService.',
      'Error [IST0109] (VirtualService shop/e) spec.hosts[0]: the host "a.test" is claimed by several VirtualServices: shop/d, shop/e\n  Put the routes into one VirtualService.',
    ],
  },
  {
    name: "IST0145: two Gateways for one host and port on the same pods; a wildcard beside it is fine",
    input:
      gateway("a", "{ port: { number: 80, name: a, protocol: HTTP }, hosts: [shop.example.com] }") +
      gateway("b", "{ port: { number: 80, name: a, protocol: HTTP }, hosts: ['*.example.com'] }"),
    expected: [
      'Error [IST0145] (Gateway shop/public) spec.servers[0]: host "shop.example.com" on port 80 is served by the Gateway shop/a already, on the same pods\n  Keep one of the servers, or give them different hosts.',
      'Error [IST0145] (Gateway shop/a) spec.servers[0]: host "shop.example.com" on port 80 is served by the Gateway shop/public already, on the same pods\n  Keep one of the servers, or give them different hosts.',
    ],
  },
  {
    name: "IST0145: Gateways whose selectors differ and choose one pod, told once; another pod's is no rival",
    input:
      ["one", "two"]
        .map(
          (name) =>
            `---\n{ apiVersion: v1, kind: Pod, metadata: { name: ${name}, namespace: shop, labels: { edge: a, tier: b } }, spec: { containers: [{ name: c }] } }\n`,
        )
        .join("") +
      gateway("wide", "{ port: { number: 80, name: a, protocol: HTTP }, hosts: [shop.example.com] }", "edge: a") +
      gateway(
        "narrow",
        "{ port: { number: 80, name: a, protocol: TCP }, hosts: [shop.example.com] }",
        "edge: a, tier: b",
      ),
    expected: [
      "Error [IST0145] (Gateway shop/narrow) spec.servers[0].port: port 80 speaks plain HTTP for the Gateway shop/wide on the same pods, so that this TCP server has no effect\n  Give one of them another port.",
      'Error [IST0145] (Gateway shop/wide) spec.servers[0]: host "shop.example.com" on port 80 is served by the Gateway shop/narrow already, on the same pods\n  Keep one of the servers, or give them different hosts.',
      'Error [IST0145] (Gateway shop/narrow) spec.servers[0]: host "shop.example.com" on port 80 is served by the Gateway shop/wide already, on the same pods\n  Keep one of the servers, or give them different hosts.',
    ],
  },
  {
    name: "IST0130: routes behind a catch-all, a prefix and an equal condition",
    input: virtualService(`
  hosts: [catalog]
  http:
    - { match: [{ uri: { prefix: /api } }], route: [{ destination: { host: catalog } }] }
    - { match: [{ uri: { exact: /api/x }, headers: { a: { exact: b } } }], route: [{ destination: { host: catalog } }] }
    - { match: [{ uri: { prefix: /ap } }], route: [{ destination: { host: catalog } }] }
    - { match: [{ headers: { a: {} } }], route: [{ destination: { host: catalog } }] }
    - { match: [{ headers: { a: { regex: "x+" }, b: { exact: c } } }], route: [{ destination: { host: catalog } }] }
    - { route: [{ destination: { host: catalog } }] }
    - { match: [{ method: { exact: GET } }], route: [{ destination: { host: catalog } }] }`),
    expected: [
      "Warning [IST0130] (VirtualService shop/rule) spec.http[1]: no request reaches this route: http[0] takes all of them\n  Put the narrower route first, or remove this one.",
      "Warning [IST0130] (VirtualService shop/rule) spec.http[4]: no request reaches this route: http[3] takes all of them\n  Put the narrower route first, or remove this one.",
      "Warning [IST0130] (VirtualService shop/rule) spec.http[6]: no request reaches this route: http[5] takes all of them\n  Put the narrower route first, or remove this one.",
    ],
  },
  {
    name: "IST0131: one of two conditions adds nothing",
    input: virtualService(`
  hosts: [catalog]
  http:
    - { match: [{ uri: { exact: /a } }], route: [{ destination: { host: catalog } }] }
    - { match: [{ uri: { exact: /b } }, { uri: { exact: /a }, method: { exact: GET } }], route: [{ destination: { host: catalog } }] }`),
    expected: [
      "Info [IST0131] (VirtualService shop/rule) spec.http[1].match[1]: this condition adds nothing: http[0] takes its requests before\n  Remove the condition.",
    ],
  },
  {
    name: "IST0131: a condition that follows from another of the same route",
    input: virtualService(`
  hosts: [catalog]
  http:
    - { match: [{ uri: { prefix: /api } }, { uri: { prefix: /apis } }], route: [{ destination: { host: catalog } }] }
    - { match: [{ uri: { prefix: /ap } }, { method: { exact: GET } }], route: [{ destination: { host: catalog } }] }`),
    expected: [
      "Info [IST0131] (VirtualService shop/rule) spec.http[0].match[1]: this condition adds nothing: http[0].match[0] takes its requests before\n  Remove the condition.",
    ],
  },
  {
    name: "IST0130, IST0131: routes of TCP and TLS whose connections others take",
    input: virtualService(`
  hosts: [catalog]
  tcp:
    - { match: [{ port: 80 }], route: [{ destination: { host: catalog } }] }
    - { match: [{ port: 80 }, { port: 81 }], route: [{ destination: { host: catalog } }] }
    - { route: [{ destination: { host: catalog } }] }
    - { match: [{ port: 82 }], route: [{ destination: { host: catalog } }] }
  tls:
    - { match: [{ sniHosts: [catalog] }], route: [{ destination: { host: catalog } }] }
    - { match: [{ sniHosts: [catalog], port: 443 }], route: [{ destination: { host: catalog } }] }`),
    expected: [
      "Warning [IST0130] (VirtualService shop/rule) spec.tls[1]: no connection reaches this route: tls[0] takes all of them\n  Put the narrower route first, or remove this one.",
      "Info [IST0131] (VirtualService shop/rule) spec.tcp[1].match[0]: this condition adds nothing: tcp[0] takes its connections before\n  Remove the condition.",
      "Warning [IST0130] (VirtualService shop/rule) spec.tcp[3]: no connection reaches this route: tcp[2] takes all of them\n  Put the narrower route first, or remove this one.",
    ],
  },
];
