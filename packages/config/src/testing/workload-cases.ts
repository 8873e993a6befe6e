// What analyzers find about ports, programs, volumes, namespaces and sidecars.
import {
  type AnalyzeCase,
  outside,
  service,
  policy,
  catalogWorkload,
  catalogVersion,
  programWithVariables,
  programWithVolumes,
} from "./analyzed-mesh.ts";

export const workloadCases: readonly AnalyzeCase[] = [
  {
    name: "IST0118: port names that tell no protocol",
    input:
      service(
        "s",
        "[{ name: web, port: 80 }, { name: x, port: 81, appProtocol: http }, { name: grpc-web, port: 82 }, { name: mongo-1, port: 83 }]",
      ) + service("t", "[{ port: 80 }]"),
    expected: [
      'Info [IST0118] (Service shop/s) spec.ports[0].name: port 80 is named "web", which does not tell its protocol\n  Name it "http-web", or set appProtocol.',
      'Info [IST0118] (Service shop/t) spec.ports[0]: port 80 has no name, which does not tell its protocol\n  Name it "http", or set appProtocol.',
    ],
  },
  {
    name: "TUL0001: what of a Service is not kept",
    input: `---
{ apiVersion: v1, kind: Service, metadata: { name: s, namespace: shop }, spec: { externalIPs: [192.0.2.1, "2001:db8::1"], ports: [{ name: tcp-a, port: 80 }, { name: b, port: 81, protocol: SCTP }] } }
---
{ apiVersion: v1, kind: Service, metadata: { name: way-in, namespace: shop, labels: { topology.istio.io/network: second } }, spec: { externalIPs: [192.0.2.2], ports: [{ name: tls, port: 15443 }] } }
---
{ apiVersion: v1, kind: Service, metadata: { name: other-port, namespace: shop, labels: { topology.istio.io/network: second } }, spec: { externalIPs: [192.0.2.3], ports: [{ name: tcp, port: 90 }] } }
---
{ apiVersion: v1, kind: Service, metadata: { name: named, namespace: shop }, spec: { externalIPs: [192.0.2.4], ports: [{ name: tls, port: 443 }] } }
---
{ apiVersion: v1, kind: ConfigMap, metadata: { name: tulle, namespace: tulle-system }, data: { meshNetworks: "networks: { third: { gateways: [{ registryServiceName: named.shop.svc.cluster.local, port: 443 }] } }" } }
`,
    options: { networkMode: "namespaces" },
    expected: [
      "Warning [TUL0001] (Service shop/s) spec.externalIPs: nothing leads 192.0.2.1 and 2001:db8::1 to the Service: connections go to whoever has the address\n  Publish a port of a gateway, or write a ServiceEntry for the address.",
      "Warning [TUL0001] (Service shop/s) spec.ports[1].protocol: port 81 speaks SCTP, which nothing leads to the Service's pods\n  Call the pods by their own addresses.",
      "Warning [TUL0001] (Service shop/other-port) spec.externalIPs: nothing leads 192.0.2.3 to the Service: connections go to whoever has the address\n  Publish a port of a gateway, or write a ServiceEntry for the address.",
    ],
  },
  {
    name: "ports of a gateway are for clients outside, whatever they speak",
    input: outside,
    options: { networkMode: "loopback" },
    expected: [],
  },
  {
    name: "IST0101: a provider that nobody has",
    input: `---
{ apiVersion: security.istio.io/v1, kind: AuthorizationPolicy, metadata: { name: asks, namespace: shop }, spec: { action: CUSTOM, provider: { name: nobody }, rules: [{}] } }
`,
    expected: [
      'Warning [IST0127] (AuthorizationPolicy shop/asks) spec: there is no workload in the namespace "shop", so the policy holds for nothing\n  Compare the selector with the labels of the pods.',
      'Error [IST0101] (AuthorizationPolicy shop/asks) spec.provider.name: no extension provider of the mesh\'s configuration is called "nobody": what the policy matches is denied\n  Add it to "extensionProviders" in the ConfigMap "tulle" of the namespace tulle-system, under the key "mesh".',
    ],
  },
  {
    name: "TUL0005: protocols that loopback mode does not carry",
    input: service(
      "s",
      "[{ name: tcp-db, port: 5432 }, { name: dns, port: 53, protocol: UDP }, { name: grpc, port: 82 }, { name: https, port: 443 }]",
    ),
    options: { networkMode: "loopback" },
    expected: [
      'Info [TUL0005] (Service shop/s) spec.ports[0]: port 5432 speaks tcp: in the loopback mode other workloads reach it by CONNECT through their proxy\n  If it speaks HTTP, name the port "http" or "http-<something>".',
      "Warning [TUL0005] (Service shop/s) spec.ports[1]: port 53 speaks udp, which the loopback mode does not carry: other workloads cannot reach it through the mesh",
      'Info [TUL0005] (Service shop/s) spec.ports[3]: port 443 speaks https: in the loopback mode other workloads reach it by CONNECT through their proxy\n  If it speaks HTTP, name the port "http" or "http-<something>".',
    ],
  },
  {
    name: "TUL0012: variables that come from nowhere",
    input: programWithVariables,
    options: { networkMode: "loopback" },
    expected: [
      'Warning [TUL0012] (Deployment shop/api) spec.template.spec.containers[1].env[5].valueFrom: the variable FILE of container "api" is not set: of valueFrom fieldRef, configMapKeyRef, secretKeyRef and resourceFieldRef are read here\n  Give it a value, or set it for tulle up: programs inherit its environment.',
      'Warning [TUL0012] (Deployment shop/api) spec.template.spec.containers[1].env[2].valueFrom.secretKeyRef: the variable KEY of container "api": there is no Secret shop/keys, and the program is not started before\n  Add it, or write `optional: true` where the program can do without.',
      'Warning [TUL0012] (Deployment shop/api) spec.template.spec.containers[1].envFrom[0].configMapRef: envFrom of container "api": there is no ConfigMap shop/settings, and the program is not started before\n  Add it, or write `optional: true` where the program can do without.',
    ],
  },
  {
    name: "TUL0012: a Secret without the key, and a ConfigMap that is there",
    input: `${programWithVariables}---
apiVersion: v1
kind: ConfigMap
metadata: { name: settings, namespace: shop }
---
apiVersion: v1
kind: Secret
metadata: { name: keys, namespace: shop }
stringData: { b: hidden }
`,
    options: { networkMode: "loopback" },
    expected: [
      /the variable FILE/,
      'Warning [TUL0012] (Deployment shop/api) spec.template.spec.containers[1].env[2].valueFrom.secretKeyRef: the variable KEY of container "api": Secret shop/keys has no key "a", and the program is not started before\n  Add it, or write `optional: true` where the program can do without.',
    ],
  },
  {
    name: "TUL0013: volumes, which no program of this machine is given",
    input: programWithVolumes,
    options: { networkMode: "loopback" },
    expected: [
      'Warning [TUL0013] (Deployment shop/api) spec.template.spec.containers[0].volumeMounts[0]: container "api" finds nothing of the volume "settings" (of a ConfigMap) at /etc/api: volumes are not mounted here, the program sees this machine\'s own files\n  Take its texts as variables (envFrom, configMapKeyRef), or keep the files beside the manifest and name their path in the command or in a variable.',
      /the volume "cache" \(emptyDir\) at \/cache: [^]* a folder of this machine/,
      /the volume "disk" \(hostPath\) at \/srv: [^]*Name the path of a folder/,
      /the volume "none" at \/x: /,
    ],
  },
  { name: "volumes of programs elsewhere are a cluster's business", input: programWithVolumes, expected: [] },
  { name: "variables of programs elsewhere are a cluster's business", input: programWithVariables, expected: [] },
  {
    name: "ports for HTTP/2 are as good as others",
    input: service("s", "[{ name: http2, port: 80 }, { name: web, port: 81, appProtocol: kubernetes.io/h2c }]"),
    expected: [],
  },
  {
    name: "IST0103: a pod without the sidecar it should have",
    input: ["{ name: app, ready: true }", "{ name: istio-proxy }"]
      .map(
        (status, index) => `---
{ apiVersion: v1, kind: Pod, metadata: { name: p${index}, namespace: shop }, spec: { containers: [{ name: app }] }, status: { containerStatuses: [${status}] } }
`,
      )
      .concat(
        "---\n{ apiVersion: v1, kind: Pod, metadata: { name: young, namespace: shop }, spec: { containers: [{ name: app }] } }\n",
      )
      .join(""),
    expected: [
      'Warning [IST0103] (Pod shop/p0) metadata: the pod "p0" should have a sidecar and has none\n  Restart it: the proxy is added when a pod starts.',
    ],
  },
  ...[undefined, { networkMode: "loopback" } as const].map((options) => ({
    name: `IST0144: an application of the proxy's user or group, ${options === undefined ? "where" : "but not where nothing"} is captured`,
    ...(options === undefined ? {} : { options }),
    input: `---
{ apiVersion: v1, kind: Namespace, metadata: { name: plain, labels: { tulle-injection: disabled } } }
---
{ apiVersion: v1, kind: Pod, metadata: { name: outside, namespace: plain }, spec: { containers: [{ name: c, securityContext: { runAsUser: 1337 } }] } }
---
{ apiVersion: v1, kind: Pod, metadata: { name: p, namespace: shop }, spec: { securityContext: { runAsUser: 1337, runAsGroup: 1, fsGroup: 1337, supplementalGroups: [5, 1337], fsGroupChangePolicy: Always }, containers: [{ name: c }, { name: istio-proxy, securityContext: { runAsUser: 1337, runAsGroup: 1337 } }] }, status: { containerStatuses: [{ name: istio-proxy }] } }
---
{ apiVersion: apps/v1, kind: Deployment, metadata: { name: d, namespace: shop }, spec: { selector: { matchLabels: { app: d } }, template: { metadata: { labels: { app: d } }, spec: { initContainers: [{ name: i, securityContext: { runAsUser: 1337 } }], containers: [{ name: c, securityContext: { runAsUser: 1336, runAsGroup: 1337, privileged: false } }] } } } }
`,
    expected:
      options !== undefined
        ? []
        : [
            ["Deployment shop/d", "spec.template.spec.initContainers[0].securityContext.runAsUser", "runs as user"],
            ["Deployment shop/d", "spec.template.spec.containers[0].securityContext.runAsGroup", "runs as group"],
            ["Pod shop/p", "spec.securityContext.fsGroup", "is a member of group"],
            ["Pod shop/p", "spec.securityContext.supplementalGroups", "is a member of group"],
            ["Pod shop/p", "spec.securityContext.runAsUser", "runs as user"],
          ].map(
            ([resource, path, what]) =>
              `Warning [IST0144] (${resource}) ${path}: an application ${what} 1337, which is the proxy's: what it sends goes round the proxy\n  Choose another number.`,
          ),
  })),
  {
    name: "IST0102: a namespace with workloads that says nothing of injection",
    input: `---
{ apiVersion: v1, kind: Namespace, metadata: { name: plain } }
---
{ apiVersion: v1, kind: Namespace, metadata: { name: empty } }
---
{ apiVersion: v1, kind: Pod, metadata: { name: p, namespace: plain }, spec: { containers: [{ name: c }] } }
---
{ apiVersion: v1, kind: Pod, metadata: { name: q, namespace: empty, labels: { sidecar.istio.io/inject: "true" } }, spec: { containers: [{ name: c }] } }
`,
    expected: [
      'Info [IST0102] (Namespace plain) metadata: the namespace "plain" does not say whether its workloads get a sidecar; they get none\n  Label it tulle-injection: enabled, or disabled if that is meant.',
    ],
  },
  {
    name: "IST0123: labels about sidecars that contradict each other",
    input: [
      "istio-injection: enabled, istio.io/rev: canary",
      "istio-injection: disabled, istio.io/rev: canary",
      "tulle-injection: disabled, istio-injection: enabled",
      "tulle-injection: enabled, istio-injection: enabled",
      "istio.io/rev: canary, istio.io/dataplane-mode: ambient",
      "istio.io/rev: canary",
    ]
      .map(
        (labels, index) =>
          `---\n{ apiVersion: v1, kind: Namespace, metadata: { name: n${index}, labels: { ${labels} } } }\n`,
      )
      .join(""),
    expected: [
      'Warning [IST0123] (Namespace n0) metadata.labels: the namespace "n0" has several labels about sidecars (istio-injection=enabled, istio.io/rev=canary), and "istio-injection" alone decides\n  Keep one of them.',
      'Warning [IST0123] (Namespace n2) metadata.labels: the namespace "n2" has several labels about sidecars (tulle-injection=disabled, istio-injection=enabled), and "tulle-injection" alone decides\n  Keep one of them.',
      'Warning [IST0123] (Namespace n4) metadata.labels: the namespace "n4" has several labels about sidecars (istio.io/rev=canary, istio.io/dataplane-mode=ambient), and "istio.io/rev" alone decides\n  Keep one of them.',
    ],
  },
  {
    name: "IST0173: a subset that no pod belongs to",
    input: catalogVersion("v1"),
    expected: [
      'Warning [IST0173] (DestinationRule shop/catalog) spec.subsets[1].labels: no workload of the Service "shop/catalog" has the labels of the subset "version-v2" (version=v2): routes that lead there answer 503\n  Compare them with the labels of the pods.',
    ],
  },
  {
    name: "IST0101: namespaces of callers that are not there",
    input:
      catalogWorkload("x: y") +
      policy(
        "AuthorizationPolicy",
        "{ rules: [{ from: [{ source: { namespaces: [shop, shpo, 'dev-*', 's*p', '*'] } }, { source: { notNamespaces: [warehouse] } }] }] }",
      ),
    expected: [
      'Warning [IST0101] (AuthorizationPolicy shop/policy) spec.rules[0].from[0].source.namespaces[1]: namespace "shpo" not found\n  Did you mean "shop"?',
      'Warning [IST0101] (AuthorizationPolicy shop/policy) spec.rules[0].from[0].source.namespaces[2]: no namespace is called "dev-*"\n  Add that Namespace.',
      'Warning [IST0101] (AuthorizationPolicy shop/policy) spec.rules[0].from[1].source.notNamespaces[0]: namespace "warehouse" not found\n  Add that Namespace.',
    ],
  },
];
