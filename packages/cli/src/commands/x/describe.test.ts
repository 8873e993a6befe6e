// What `tulle x describe` says of pods and Services of a small mesh, with everything that can hold for them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadText, type Kind, type MeshResource, type ResourceOf } from "@tulle/config";
import { describePod, describeService, type DescribedMesh } from "./describe-facts.ts";
import { podText, serviceText } from "./describe-text.ts";
import { chooseResource } from "../../arguments/choose-resource.ts";

const manifests = `
apiVersion: v1
kind: Pod
metadata: { name: catalog-v1-a, namespace: shop, labels: { app: catalog, version: v1 } }
spec: { containers: [{ name: catalog, ports: [{ name: http, containerPort: 3000 }] }] }
status:
  phase: Running
  podIP: 127.9.9.1
  conditions: [{ type: Ready, status: "True" }]
  containerStatuses: [{ name: istio-proxy, ready: true, restartCount: 0 }]
---
apiVersion: v1
kind: Pod
metadata: { name: bare, namespace: shop, labels: { app: bare } }
spec: { containers: [{ name: bare }] }
---
apiVersion: v1
kind: Pod
metadata:
  name: gateway-a
  namespace: tulle-system
  labels: { tulle: ingressgateway }
  annotations: { inject.tulle.io/templates: gateway }
spec: { containers: [{ name: istio-proxy, ports: [{ containerPort: 8080 }] }] }
status:
  phase: Running
  conditions: [{ type: Ready, status: "True" }]
---
apiVersion: v1
kind: Service
metadata: { name: catalog, namespace: shop }
spec: { selector: { app: catalog }, ports: [{ name: http, port: 80, targetPort: http }] }
---
apiVersion: v1
kind: Service
metadata: { name: lonely, namespace: shop }
spec: { selector: { app: lonely }, ports: [{ name: tcp, port: 90 }] }
---
apiVersion: v1
kind: Service
metadata: { name: gateway, namespace: tulle-system }
spec: { selector: { tulle: ingressgateway }, ports: [{ name: http, port: 80, targetPort: 8080 }] }
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: shop-gateway, namespace: shop }
spec:
  selector: { tulle: ingressgateway }
  servers: [{ port: { number: 80, name: http, protocol: HTTP }, hosts: ["*"] }]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: catalog, namespace: shop }
spec:
  host: catalog
  trafficPolicy: { tls: { mode: ISTIO_MUTUAL }, outlierDetection: { consecutive5xxErrors: 3 } }
  subsets: [{ name: v1, labels: { version: v1 } }, { name: v2, labels: { version: v2 } }]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: catalog, namespace: shop }
spec:
  hosts: [catalog]
  http:
    - match: [{ headers: { x-dark-launch: { exact: v2 } } }]
      route: [{ destination: { host: catalog, subset: v2 } }]
    - match: [{ uri: { prefix: /items }, method: { exact: GET } }, { uri: { exact: / } }]
      route:
        - { destination: { host: catalog, subset: v1 }, weight: 90 }
        - { destination: { host: catalog, subset: v2 }, weight: 10 }
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: outside, namespace: shop }
spec:
  hosts: ["*"]
  gateways: [shop-gateway]
  http: [{ route: [{ destination: { host: catalog.shop.svc.cluster.local } }] }]
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: { name: default, namespace: shop }
spec: { mtls: { mode: STRICT } }
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: { name: catalog, namespace: shop }
spec: { selector: { matchLabels: { app: catalog } }, portLevelMtls: { 3000: { mode: PERMISSIVE } } }
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: { name: tokens, namespace: shop }
spec: { jwtRules: [{ issuer: http://issuer, audiences: [http://catalog] }] }
`;

const { resources } = loadText(Buffer.from(manifests), "mesh.yaml");

function all<K extends Kind>(kind: K): ResourceOf<K>[] {
  return resources.filter((each: MeshResource): each is ResourceOf<K> & MeshResource => each.kind === kind);
}

const mesh: DescribedMesh = {
  pods: all("Pod"),
  services: all("Service"),
  destinationRules: all("DestinationRule"),
  virtualServices: all("VirtualService"),
  gateways: all("Gateway"),
  peerAuthentications: all("PeerAuthentication"),
  requestAuthentications: all("RequestAuthentication"),
  publishedPorts: [
    { address: "127.0.0.1", port: 8088, targetPort: 8080, service: "gateway.tulle-system", protocol: "http" },
    { address: "127.0.0.1", port: 8089, targetPort: 9090, service: "gateway.tulle-system", protocol: "http" },
  ],
};

const policies = [{ action: "DENY", dryRun: false, name: "readers", namespace: "shop", rules: 1 }] as const;

function pod(name: string) {
  return mesh.pods.find(({ metadata }) => metadata.name === name)!;
}

test("a pod of the mesh", () => {
  assert.equal(
    podText({ ...describePod(mesh, pod("catalog-v1-a")), policies }, undefined),
    `Pod: catalog-v1-a.shop
   Pod Ports: 3000 (catalog)
--------------------
Service: catalog.shop
   Port: http 80/HTTP targets pod port 3000
DestinationRule: catalog.shop for "catalog"
   Matching subsets: v1 (not v2)
   Traffic Policy TLS Mode: ISTIO_MUTUAL
   Policies: outlier detection
VirtualService: catalog.shop
   Match: GET, /items*; or /
      Route to host "catalog" subset "v1" with weight 90
      Route to host "catalog" subset "v2" with weight 10
   1 more route(s) that lead elsewhere
--------------------
RBAC policies:
   DENY readers.shop, 1 rule
--------------------
Effective PeerAuthentication:
   Workload mTLS mode: STRICT
   Port 3000 mTLS mode: PERMISSIVE
Applied PeerAuthentication:
   default.shop, catalog.shop
--------------------
RequestAuthentication: tokens.shop
   Tokens of http://issuer
--------------------
Exposed on Ingress Gateway shop-gateway.shop at http://localhost:8088
VirtualService: outside.shop
   Match: everything
      Route to host "catalog.shop.svc.cluster.local"
`,
  );
});

test("a pod outside of it", () => {
  assert.equal(
    podText({ ...describePod(mesh, pod("bare")), policies: undefined }, undefined),
    `Pod: bare.shop
   Pod does not expose ports
WARNING: the pod is not ready, and Services do not send to it
WARNING: the pod is not part of the mesh: it has no proxy
--------------------
No Service selects this pod: nobody reaches it by a name.
--------------------
RequestAuthentication: tokens.shop
   Tokens of http://issuer
`,
  );
});

test("a gateway has no mode of its own", () => {
  const text = podText({ ...describePod(mesh, pod("gateway-a")), policies: [] }, undefined);
  assert.doesNotMatch(text, /PeerAuthentication/);
  assert.match(text, /^RBAC policies: none, everyone is answered$/m);
});

test("a Service, with and without pods", () => {
  const [catalog, lonely] = ["catalog", "lonely"].map((name) =>
    describeService(mesh, chooseResource("Service", mesh.services, { text: name })),
  );
  assert.match(serviceText({ ...catalog!, policies: undefined }, undefined), /^ {3}Pods: catalog-v1-a$/m);
  assert.equal(
    serviceText({ ...lonely!, policies: undefined }, undefined),
    `Service: lonely.shop
   WARNING: no pod has the labels of its selector
   Port: tcp 90/TCP targets pod port 90
`,
  );
  assert.throws(() => chooseResource("Service", mesh.services, { text: "nobody" }), {
    message: "there is no Service nobody",
  });
  assert.equal(chooseResource("Service", mesh.services, { text: "gateway.tulle-system" }).metadata.name, "gateway");
  assert.throws(() => chooseResource("Service", mesh.services, { text: "catalog", namespace: "elsewhere" }));
});

test("no line is longer than the terminal", () => {
  const text = podText({ ...describePod(mesh, pod("catalog-v1-a")), policies }, 60);
  assert.deepEqual(
    text.split("\n").filter((line) => line.length > 60),
    [],
  );
});
