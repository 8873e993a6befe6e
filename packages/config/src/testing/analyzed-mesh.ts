// The small mesh that analyzers are tried on, and what is added to it.
import { testCertificate } from "../../../../tests/tools/certificates.ts";
import type { AnalyzeOptions } from "../analyzers/analyzer.ts";

export const shop = `
kind: List
apiVersion: v1
items:
  - { apiVersion: v1, kind: Namespace, metadata: { name: shop, labels: { tulle-injection: enabled } } }
  - { apiVersion: v1, kind: Namespace, metadata: { name: tulle-system } }
  - apiVersion: v1
    kind: Service
    metadata: { name: catalog, namespace: shop }
    spec: { selector: { app: catalog }, ports: [{ name: http, port: 80, targetPort: 3000 }] }
  - apiVersion: v1
    kind: Service
    metadata: { name: admin, namespace: shop }
    spec: { selector: { app: admin }, ports: [{ name: http, port: 80 }, { name: http-metrics, port: 9090 }] }
  - apiVersion: v1
    kind: Service
    metadata: { name: gateway, namespace: tulle-system }
    spec: { selector: { tulle: ingressgateway }, ports: [{ name: http, port: 80, targetPort: 8080 }] }
  - apiVersion: apps/v1
    kind: Deployment
    metadata: { name: gateway, namespace: tulle-system }
    spec:
      selector: { matchLabels: { tulle: ingressgateway } }
      template:
        metadata: { labels: { tulle: ingressgateway }, annotations: { inject.tulle.io/templates: gateway } }
        spec: { containers: [{ name: istio-proxy }] }
  - apiVersion: networking.tulle.io/v1
    kind: DestinationRule
    metadata: { name: catalog, namespace: shop }
    spec:
      host: catalog
      subsets: [{ name: version-v1, labels: { version: v1 } }, { name: version-v2, labels: { version: v2 } }]
  - apiVersion: networking.tulle.io/v1
    kind: Gateway
    metadata: { name: public, namespace: shop }
    spec:
      selector: { tulle: ingressgateway }
      servers: [{ port: { number: 80, name: http, protocol: HTTP }, hosts: ["shop.example.com", "*.test"] }]
`;

export const certificate = await testCertificate({ commonName: "shop", isAuthority: true, days: 30 });
export const dayMs = 24 * 60 * 60 * 1000;
export const secret = (name: string, data: Readonly<Record<string, string>>, namespace = "tulle-system"): string =>
  `---\n${JSON.stringify({ apiVersion: "v1", kind: "Secret", metadata: { name, namespace }, stringData: data })}\n`;
export const pair = { "tls.crt": certificate.certificate, "tls.key": certificate.key };
export const secure = (mode: string, credentialName: string, host = "tls.example"): string =>
  `{ port: { number: 443, name: a, protocol: HTTPS }, hosts: [${host}], tls: { mode: ${mode}, credentialName: ${credentialName} } }`;

export const login = (spec: string): string =>
  `---\napiVersion: security.tulle.io/v1alpha1\nkind: BrowserLogin\nmetadata: { name: login, namespace: shop }\nspec: ${spec}\n`;
export const outside =
  "---\napiVersion: v1\nkind: Service\nmetadata: { name: outside, namespace: tulle-system }\nspec: { selector: { tulle: ingressgateway }, ports: [{ name: https, port: 443, targetPort: 8443 }] }\n";

export const virtualService = (spec: string, name = "rule"): string =>
  `---\napiVersion: networking.tulle.io/v1\nkind: VirtualService\nmetadata: { name: ${name}, namespace: shop }\nspec: ${spec}\n`;
export const routeTo = (destination: string): string =>
  virtualService(`{ hosts: [catalog], http: [{ route: [{ destination: ${destination} }] }] }`);
export const gateway = (name: string, server: string, selector = "tulle: ingressgateway"): string =>
  `---\napiVersion: networking.tulle.io/v1\nkind: Gateway\nmetadata: { name: ${name}, namespace: shop }\nspec:\n  selector: { ${selector} }\n  servers: [${server}]\n`;
export const service = (name: string, ports: string): string =>
  `---\napiVersion: v1\nkind: Service\nmetadata: { name: ${name}, namespace: shop }\nspec: { ports: ${ports} }\n`;

export const destinationRule = (spec: string, name = "rule"): string =>
  `---\napiVersion: networking.tulle.io/v1\nkind: DestinationRule\nmetadata: { name: ${name}, namespace: shop }\nspec: ${spec}\n`;
export const policy = (kind: string, spec: string, name = "policy", namespace = "shop"): string =>
  `---\napiVersion: security.tulle.io/v1\nkind: ${kind}\nmetadata: { name: ${name}, namespace: ${namespace} }\nspec: ${spec}\n`;
/** Behind every subset. */
export const catalogWorkload = (annotation: string): string =>
  ["v1", "v2"].map((version) => catalogVersion(version, annotation)).join("");
export const catalogVersion = (version: string, annotation = "x: y"): string =>
  `---\napiVersion: apps/v1\nkind: Deployment\nmetadata: { name: catalog${version === "v1" ? "" : `-${version}`}, namespace: shop }\nspec:\n  selector: { matchLabels: { app: catalog } }\n  template:\n    metadata: { labels: { app: catalog, version: ${version} }, annotations: { ${annotation} } }\n    spec: { containers: [{ name: app }] }\n`;

/** What is found where `input` is added to the shop. */
export interface AnalyzeCase {
  readonly name: string;
  readonly input: string;
  readonly options?: AnalyzeOptions;
  readonly expected: readonly (string | RegExp)[];
}

export const programWithVariables = `---
apiVersion: apps/v1
kind: Deployment
metadata: { name: api, namespace: shop }
spec:
  selector: { matchLabels: { app: api } }
  template:
    metadata: { labels: { app: api } }
    spec:
      containers:
        - name: beside
        - name: api
          envFrom: [{ configMapRef: { name: settings } }]
          env:
            - { name: PLAIN, value: a }
            - { name: IP, valueFrom: { fieldRef: { fieldPath: status.podIP } } }
            - { name: KEY, valueFrom: { secretKeyRef: { name: keys, key: a } } }
            - { name: MODE, valueFrom: { configMapKeyRef: { name: settings, key: a, optional: true } } }
            - { name: CPUS, valueFrom: { resourceFieldRef: { resource: limits.cpu } } }
            - { name: FILE, valueFrom: { fileKeyRef: { volumeName: v, path: p, key: k } } }
`;
export const programWithVolumes = `---
apiVersion: apps/v1
kind: Deployment
metadata: { name: api, namespace: shop }
spec:
  selector: { matchLabels: { app: api } }
  template:
    metadata: { labels: { app: api } }
    spec:
      volumes: [{ name: settings, configMap: { name: settings } }, { name: cache, emptyDir: {} }, { name: disk, hostPath: { path: /srv } }]
      containers:
        - name: api
          volumeMounts: [{ name: settings, mountPath: /etc/api }, { name: cache, mountPath: /cache }, { name: disk, mountPath: /srv }, { name: none, mountPath: /x }]
`;
