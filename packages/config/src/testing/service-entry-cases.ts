// What analyzers find about hosts of ServiceEntries.
import { type AnalyzeCase, routeTo } from "./analyzed-mesh.ts";

const entry = (name: string, spec: string, labels = "{}", namespace = "shop"): string =>
  `---\napiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: { name: ${name}, namespace: ${namespace}, labels: ${labels} }\nspec: ${spec}\n`;
const outside = entry(
  "outside",
  "{ hosts: [api.example.com], resolution: DNS, ports: [{ number: 80, name: http, protocol: HTTP }, { number: 443, name: tls, protocol: TLS }] }",
);

export const serviceEntryCases: readonly AnalyzeCase[] = [
  {
    name: "a host of a ServiceEntry is a destination, and has rules",
    input: `${outside}${routeTo("{ host: api.example.com, subset: v1, port: { number: 80 } }")}---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: outside, namespace: shop }
spec: { host: API.example.com, subsets: [{ name: v1 }] }
`,
    expected: [],
  },
  {
    name: "IST0101, IST0112: ports of a ServiceEntry",
    input: outside + routeTo("{ host: api.example.com, port: { number: 81 } }"),
    expected: [
      'Error [IST0101] (VirtualService shop/rule) spec.http[0].route[0].destination.port.number: port 81 of host "api.example.com" not found\n  Ports of the ServiceEntry: 80, 443.',
    ],
  },
  {
    name: "TUL0001: what DYNAMIC_DNS cannot lead anywhere",
    input: entry(
      "outside",
      `{ hosts: ["*.example.com"], resolution: DYNAMIC_DNS, ports: [
         { number: 80, name: http, protocol: HTTP, targetPort: 443 }, { number: 443, name: tls, protocol: TLS, targetPort: 8443 },
         { number: 8080, name: other, protocol: HTTP, targetPort: 80 }, { number: 5432, name: sql, protocol: TCP }] }`,
    ),
    expected: [
      "Warning [TUL0001] (ServiceEntry shop/outside) spec.ports[2].targetPort: with DYNAMIC_DNS requests go to the port that they name: targetPort 80 has no effect\n  Leave it out.",
      "Warning [TUL0001] (ServiceEntry shop/outside) spec.ports[3]: with DYNAMIC_DNS nobody can tell which host a connection to port 5432 is meant for: captured workloads do not reach it\n  Write the protocol HTTP or TLS.",
    ],
  },
  {
    name: "a route to hosts that are looked up by their name",
    input: entry(
      "outside",
      '{ hosts: ["*.example.com"], resolution: DYNAMIC_DNS, ports: [{ number: 80, name: http, protocol: HTTP }] }',
    ),
    expected: [],
  },
  {
    name: "TUL0016: a host that a Service has, and one that another entry has",
    input:
      outside +
      entry("second", "{ hosts: [Api.example.com, catalog.shop.svc.cluster.local], resolution: STATIC }") +
      entry("elsewhere", "{ hosts: [api.example.com], resolution: STATIC }", "{}", "other"),
    expected: [
      'Warning [TUL0016] (ServiceEntry shop/second) spec.hosts[0]: the host "Api.example.com" is that of the ServiceEntry "shop/outside": this entry has no effect for it\n  Put the endpoints into one entry.',
      'Warning [TUL0016] (ServiceEntry shop/second) spec.hosts[1]: the host "catalog.shop.svc.cluster.local" is that of the Service "shop/catalog": this entry has no effect for it\n  Choose another host.',
    ],
  },
  {
    name: "IST0134: an entry without addresses",
    input: entry(
      "outside",
      "{ hosts: [api.example.com], resolution: DNS, ports: [{ number: 80, name: http, protocol: HTTP }, { number: 90, name: sql, protocol: TCP }] }",
      '{ networking.istio.io/enable-autoallocate-ip: "false" }',
    ),
    expected: [
      "Warning [IST0134] (ServiceEntry shop/outside) spec.ports[1]: without an address captured workloads do not find port 90, whose connections no host tells apart\n  Write addresses.",
    ],
  },
  {
    name: "where clients look up themselves, connections are known by their port",
    input: entry("outside", "{ hosts: [api.example.com], ports: [{ number: 90, name: sql, protocol: TCP }] }"),
    expected: [],
  },
];
