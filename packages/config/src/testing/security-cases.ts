// What analyzers find about policies, certificates, Secrets, tokens and sign-ins.
import {
  type AnalyzeCase,
  certificate,
  dayMs,
  secret,
  pair,
  secure,
  login,
  outside,
  virtualService,
  gateway,
  service,
  destinationRule,
  policy,
  catalogWorkload,
} from "./analyzed-mesh.ts";

export const securityCases: readonly AnalyzeCase[] = [
  {
    name: "policies that hold for workloads with a proxy",
    input:
      policy("AuthorizationPolicy", "{ selector: { matchLabels: { app: catalog } }, rules: [{}] }") +
      catalogWorkload("") +
      policy("RequestAuthentication", `{ jwtRules: [{ issuer: "https://i", audiences: [a] }] }`),
    expected: [],
  },
  {
    name: "IST0127: a policy for nothing",
    input:
      policy("AuthorizationPolicy", "{ selector: { matchLabels: { app: none } } }") +
      policy("RequestAuthentication", "{}") +
      policy("AuthorizationPolicy", "{ selector: { matchLabels: { app: none } } }", "mesh", "tulle-system"),
    expected: [
      'Warning [IST0127] (AuthorizationPolicy shop/policy) spec.selector: there is no workload with the labels app=none in the namespace "shop", so the policy holds for nothing\n  Compare the selector with the labels of the pods.',
      "Warning [IST0127] (AuthorizationPolicy tulle-system/mesh) spec.selector: there is no workload with the labels app=none in the mesh, so the policy holds for nothing\n  Compare the selector with the labels of the pods.",
      'Warning [IST0127] (RequestAuthentication shop/policy) spec: there is no workload in the namespace "shop", so the policy holds for nothing\n  Compare the selector with the labels of the pods.',
    ],
  },
  {
    name: "IST0167: a policy that no proxy enforces",
    input: policy("AuthorizationPolicy", "{}") + catalogWorkload("sidecar.istio.io/inject: 'false'"),
    expected: [
      "Warning [IST0167] (AuthorizationPolicy shop/policy) spec: no workload that the policy holds for has a proxy, so nothing enforces it\n  Label the namespace with tulle-injection=enabled and restart the pods.",
    ],
  },
  {
    name: "IST0167: rules about requests at ports without requests",
    input:
      catalogWorkload("") +
      "---\napiVersion: v1\nkind: Service\nmetadata: { name: sql, namespace: shop }\nspec: { selector: { app: catalog }, ports: [{ name: tcp-sql, port: 5432 }, { name: http-x, port: 81 }] }\n" +
      policy(
        "AuthorizationPolicy",
        '{ rules: [{ to: [{ operation: { methods: [GET] } }] }, { to: [{ operation: { paths: [/a], ports: ["81"] } }] }, { from: [{ source: { ipBlocks: [10.0.0.0/8] } }] }] }',
        "allow",
      ) +
      policy(
        "AuthorizationPolicy",
        '{ action: DENY, rules: [{ when: [{ key: source.ip, values: [10.0.0.1] }, { key: "request.headers[x-a]", values: [b] }] }] }',
        "deny",
      ),
    expected: [
      'Warning [IST0167] (AuthorizationPolicy shop/allow) spec.rules[0].to[0].operation.methods: this is about requests, and port 5432 of the Service "sql" speaks tcp: the rule is left out there and allows nothing\n  Give the rule the ports that it is for (to: operation: ports), and the others rules of their own.',
      'Warning [IST0167] (AuthorizationPolicy shop/deny) spec.rules[0].when[1].key: this is about requests, and port 5432 of the Service "sql" speaks tcp: there the rule is judged without this, and matches more than it says\n  Give the rule the ports that it is for (to: operation: ports), and the others rules of their own.',
    ],
  },
  {
    name: "IST0167: conditions on an identity in a mesh without certificates",
    options: { hasAuthority: false },
    input:
      catalogWorkload("") +
      policy(
        "AuthorizationPolicy",
        "{ rules: [{ from: [{ source: { ipBlocks: [10.0.0.0/8] } }, { source: { namespaces: [shop], notPrincipals: [x] } }], when: [{ key: source.serviceAccount, values: [a], notValues: [b] }, { key: source.ip, values: [10.0.0.1] }] }] }",
      ),
    expected: [
      ["from[1].source.namespaces", "no"],
      ["from[1].source.notPrincipals", "every"],
      ["when[0].values", "no"],
      ["when[0].notValues", "every"],
    ].map(
      ([path, which]) =>
        `Warning [IST0167] (AuthorizationPolicy shop/policy) spec.rules[0].${path}: workloads get no certificates here, so connections tell nothing of who calls and ${which} request meets this condition\n  Run the control plane with its certificate authority (--xds-tls), or tell callers apart by their tokens (requestPrincipals).`,
    ),
  },
  {
    name: "IST0167: encryption in a mesh without certificates",
    options: { hasAuthority: false },
    input:
      catalogWorkload("") +
      policy("PeerAuthentication", "{ mtls: { mode: STRICT } }") +
      destinationRule("{ host: admin, trafficPolicy: { tls: { mode: ISTIO_MUTUAL } } }"),
    expected: [
      "Warning [IST0167] (PeerAuthentication shop/policy) spec: workloads get no certificates here, so ports that should be STRICT take plain text\n  Run the control plane with its certificate authority (--xds-tls).",
      "Warning [IST0167] (DestinationRule shop/rule) spec: workloads get no certificates here, so ISTIO_MUTUAL sends plain text\n  Run the control plane with its certificate authority (--xds-tls).",
    ],
  },
  {
    name: "conditions on identities",
    input:
      catalogWorkload("") +
      policy("AuthorizationPolicy", "{ rules: [{ from: [{ source: { principals: [a], notNamespaces: [shop] } }] }] }"),
    expected: [],
  },
  {
    name: "a PeerAuthentication for the mesh, the namespace, a workload and its ports",
    input:
      catalogWorkload("") +
      policy("PeerAuthentication", "{ mtls: { mode: STRICT } }", "mesh", "tulle-system") +
      policy("PeerAuthentication", "{ mtls: { mode: STRICT } }") +
      policy(
        "PeerAuthentication",
        "{ selector: { matchLabels: { app: catalog } }, portLevelMtls: { 3000: { mode: PERMISSIVE } } }",
        "catalog",
      ),
    expected: [],
  },
  {
    name: "IST0127: a PeerAuthentication for nothing",
    input: policy("PeerAuthentication", "{ selector: { matchLabels: { app: none } }, mtls: { mode: STRICT } }"),
    expected: [
      'Warning [IST0127] (PeerAuthentication shop/policy) spec.selector: there is no workload with the labels app=none in the namespace "shop", so the policy holds for nothing\n  Compare the selector with the labels of the pods.',
    ],
  },
  {
    name: "IST0167: PeerAuthentications that have no effect",
    input:
      catalogWorkload("") +
      policy("PeerAuthentication", "{ selector: { matchLabels: { app: catalog } } }", "selected", "istio-system") +
      policy(
        "PeerAuthentication",
        "{ selector: { matchLabels: { tulle: ingressgateway } }, mtls: { mode: STRICT } }",
        "gateway",
        "tulle-system",
      ) +
      policy(
        "PeerAuthentication",
        "{ selector: { matchLabels: { app: catalog } }, portLevelMtls: { 80: { mode: STRICT } } }",
      ) +
      `---\n{ apiVersion: v1, kind: Pod, metadata: { name: edge, namespace: shop, labels: { app: edge }, annotations: { inject.tulle.io/templates: gateway } }, spec: { containers: [{ name: istio-proxy }] } }\n` +
      policy("PeerAuthentication", "{ selector: { matchLabels: { app: edge } }, mtls: { mode: STRICT } }", "edge"),
    expected: [
      'Warning [IST0167] (PeerAuthentication istio-system/selected) spec.selector: a PeerAuthentication in "istio-system" is for the whole mesh: one with a selector holds for nothing\n  Leave the selector out, or move the policy to the workloads\' namespace.',
      'Warning [IST0167] (PeerAuthentication tulle-system/gateway) spec.selector: a PeerAuthentication in "tulle-system" is for the whole mesh: one with a selector holds for nothing\n  Leave the selector out, or move the policy to the workloads\' namespace.',
      'Warning [IST0167] (PeerAuthentication shop/policy) spec.portLevelMtls["80"]: no chosen workload listens on port 80\n  Write the port of the pods, not of their Service; known are 3000.',
      "Warning [IST0167] (PeerAuthentication shop/edge) spec.selector: the chosen workloads are gateways, whose TLS is that of their Gateway resources\n  Set servers.tls in the Gateway.",
    ],
  },
  {
    name: "TUL0008: two PeerAuthentications for the same workloads",
    input:
      catalogWorkload("") +
      policy("PeerAuthentication", "{ mtls: { mode: STRICT } }", "first") +
      policy("PeerAuthentication", "{ mtls: { mode: DISABLE } }", "second") +
      policy("PeerAuthentication", "{ selector: { matchLabels: { app: catalog } } }", "third") +
      policy("PeerAuthentication", "{ selector: { matchLabels: { app: catalog } } }", "fourth"),
    expected: [
      "Warning [TUL0008] (PeerAuthentication shop/second) spec: the PeerAuthentication shop/first is for the same workloads and older, so this one has no effect on them\n  Keep one of the two.",
      "Warning [TUL0008] (PeerAuthentication shop/fourth) spec.selector: the PeerAuthentication shop/third is for the same workloads and older, so this one has no effect on them\n  Keep one of the two.",
    ],
  },
  {
    name: "IST0113: a rule for plain text to a workload that is STRICT, and the other way round",
    input:
      catalogWorkload("") +
      policy("PeerAuthentication", "{ mtls: { mode: STRICT } }", "strict") +
      destinationRule("{ host: catalog, trafficPolicy: { tls: { mode: DISABLE } } }") +
      destinationRule(
        "{ host: admin, trafficPolicy: { portLevelSettings: [{ port: { number: 80 }, tls: { mode: ISTIO_MUTUAL } }] } }",
        "other",
      ) +
      service("bare", "[{ name: http, port: 80 }], selector: { app: bare }") +
      `---\n{ apiVersion: v1, kind: Pod, metadata: { name: bare, namespace: shop, labels: { app: bare, sidecar.istio.io/inject: "false" } }, spec: { containers: [{ name: app }] } }\n` +
      destinationRule("{ host: bare, trafficPolicy: { tls: { mode: ISTIO_MUTUAL } } }", "bare"),
    expected: [
      "Error [IST0113] (DestinationRule shop/rule) spec.trafficPolicy.tls.mode: port 3000 of the Deployment shop/catalog takes mutual TLS of the mesh alone (STRICT), and the rule says DISABLE: no request will pass\n  Leave tls out: callers of the mesh use what the workload takes.",
      "Error [IST0113] (DestinationRule shop/bare) spec.trafficPolicy.tls.mode: port 80 of the Pod shop/bare takes no TLS of the mesh, and the rule says ISTIO_MUTUAL: no request will pass\n  Leave tls out, or let the workload take mutual TLS.",
    ],
  },
  {
    name: "IST0128, IST0129, IST0133: servers that are not checked, Secrets for sidecars",
    input: destinationRule(
      "{ host: admin, trafficPolicy: { tls: { mode: SIMPLE, insecureSkipVerify: true }, portLevelSettings: [{ port: { number: 80 }, tls: { mode: SIMPLE, insecureSkipVerify: true } }, { port: { number: 9090 }, tls: { mode: MUTUAL, credentialName: admin } }] } }",
    ),
    expected: [
      'Warning [IST0128] (DestinationRule shop/rule) spec.trafficPolicy.tls.insecureSkipVerify: the server\'s certificate is not checked: whoever answers is believed\n  Name its authorities in "caCertificates" instead.',
      'Warning [IST0129] (DestinationRule shop/rule) spec.trafficPolicy.portLevelSettings[0].tls.insecureSkipVerify: the server\'s certificate is not checked: whoever answers is believed\n  Name its authorities in "caCertificates" instead.',
      'Info [IST0133] (DestinationRule shop/rule) spec.trafficPolicy.portLevelSettings[1].tls.credentialName: Secrets reach gateways alone: sidecars check the server against the authorities of their machine, and show no certificate\n  For sidecars, name files: "caCertificates", "clientCertificate", "privateKey".',
    ],
  },
  {
    name: "IST0167: conditions on tokens that nobody checks",
    input:
      catalogWorkload("") +
      policy(
        "AuthorizationPolicy",
        "{ selector: { matchLabels: { app: catalog } }, rules: [{ from: [{ source: { requestPrincipals: ['*'] } }] }, { when: [{ key: request.auth.audiences, values: [a] }] }] }",
      ) +
      policy(
        "RequestAuthentication",
        `{ selector: { matchLabels: { tulle: ingressgateway } }, jwtRules: [{ issuer: "https://i", audiences: [a] }] }`,
        "elsewhere",
        "tulle-system",
      ),
    expected: [
      "Warning [IST0167] (AuthorizationPolicy shop/policy) spec.rules[0].from[0].source.requestPrincipals: the policy looks at tokens, and no RequestAuthentication checks them at the workloads that it holds for\n  Add a RequestAuthentication with the same selector.",
    ],
  },
  {
    name: "conditions on tokens that are checked",
    input:
      catalogWorkload("") +
      policy("AuthorizationPolicy", "{ rules: [{ when: [{ key: 'request.auth.claims[a]', values: [a] }] }] }") +
      policy("RequestAuthentication", `{ jwtRules: [{ issuer: "https://i", audiences: [a] }] }`),
    expected: [],
  },
  {
    name: "TUL0006: tokens for anybody",
    input:
      catalogWorkload("") + policy("RequestAuthentication", `{ jwtRules: [{ issuer: "https://issuer.example.com" }] }`),
    expected: [
      'Warning [TUL0006] (RequestAuthentication shop/policy) spec.jwtRules[0]: the rule for https://issuer.example.com names no audiences: tokens of that issuer for any other service pass too\n  Add "audiences" with the name of this service.',
    ],
  },
  {
    name: "IST0149: routes by claims at a gateway that checks no tokens",
    input: virtualService(
      "{ hosts: [shop.example.com], gateways: [public], http: [{ match: [{ headers: { '@request.auth.claims.groups': { exact: admin } } }], route: [{ destination: { host: catalog } }] }] }",
    ),
    expected: [
      'Error [IST0149] (VirtualService shop/rule) spec.http[0].match[0].headers["@request.auth.claims.groups"]: the route looks at claims, and no RequestAuthentication holds for the workloads of the gateway "shop/public"\n  Add one in the namespace of the gateway\'s pods, with their labels as selector.',
    ],
  },
  {
    name: "plain HTTP and TLS on one port",
    input: gateway("a", secure("SIMPLE", "site").replace("443", "80")) + secret("site", pair),
    expected: [
      "Error [IST0145] (Gateway shop/a) spec.servers[0].port: port 80 speaks plain HTTP for the Gateway shop/public on the same pods, so that this HTTPS server has no effect\n  Give one of them another port.",
    ],
  },
  {
    name: "routes of connections that lead nowhere",
    input: virtualService(
      "{ hosts: [shop.example.com], gateways: [public], tcp: [{ route: [{ destination: { host: nowhere } }] }], tls: [{ match: [{ sniHosts: [shop.example.com] }], route: [{ destination: { host: admin } }] }] }",
    ),
    expected: [
      'Error [IST0112] (VirtualService shop/rule) spec.tls[0].route[0].destination.host: the Service "admin" has several ports (80, 9090), and the destination names none\n  Add port.number to the destination.',
      'Error [IST0101] (VirtualService shop/rule) spec.tcp[0].route[0].destination.host: host "nowhere" not found\n  Add a Service "nowhere" to the namespace "shop", or write the full name of a service elsewhere.',
    ],
  },
  {
    name: "Secrets that are there",
    input:
      outside +
      gateway("a", secure("MUTUAL", "site")) +
      gateway("b", secure("SIMPLE", "localhost-dev", "b.example")) +
      secret("site", pair) +
      secret("site-cacert", { cacert: certificate.certificate }),
    expected: [],
  },
  {
    name: "a Secret that is not there, in another namespace, and misspelt",
    input:
      outside +
      gateway("a", secure("SIMPLE", "nowhere-at-all")) +
      gateway("b", secure("SIMPLE", "site", "b.example")) +
      gateway("c", secure("SIMPLE", "wild", "c.example")) +
      secret("site", pair, "shop") +
      secret("wild1", pair),
    expected: [
      `Error [IST0101] (Gateway shop/a) spec.servers[0].tls.credentialName: the Secret "nowhere-at-all" is not there in the namespace "tulle-system", where the gateway's pods run; the server waits for it\n  Add that Secret.`,
      `Error [IST0101] (Gateway shop/b) spec.servers[0].tls.credentialName: the Secret "site" is not there in the namespace "tulle-system", where the gateway's pods run; the server waits for it\n  There is one in "shop": gateways take Secrets of their own namespace alone.`,
      `Error [IST0101] (Gateway shop/c) spec.servers[0].tls.credentialName: the Secret "wild" is not there in the namespace "tulle-system", where the gateway's pods run; the server waits for it\n  Did you mean "wild1"?`,
    ],
  },
  {
    name: "Secrets that hold something else",
    input:
      outside +
      gateway("a", secure("SIMPLE", "empty")) +
      gateway("b", secure("OPTIONAL_MUTUAL", "site", "b.example")) +
      secret("empty", {}) +
      secret("site", pair),
    expected: [
      'Error [IST0161] (Gateway shop/a) spec.servers[0].tls.credentialName: the Secret tulle-system/empty cannot be used: it holds neither "tls.crt" and "tls.key" nor "cert" and "key"',
      'Error [IST0161] (Gateway shop/b) spec.servers[0].tls.credentialName: the Secret tulle-system/site cannot be used: it holds neither "ca.crt" nor "cacert"',
    ],
  },
  {
    name: "a certificate near its end",
    input: outside + gateway("a", secure("SIMPLE", "site")) + secret("site", pair),
    options: { nowMs: Date.now() + 20 * dayMs },
    expected: [/^Warning \[IST0161\] .*: the Secret tulle-system\/site expires soon: it holds until 20/],
  },
  {
    name: "a certificate after its end",
    input: outside + gateway("a", secure("SIMPLE", "site")) + secret("site", pair),
    options: { nowMs: Date.now() + 40 * dayMs },
    expected: [/^Error \[IST0161\] .*: the Secret tulle-system\/site has expired: it held until 20/],
  },
  {
    name: "one certificate at two Gateways",
    input:
      outside +
      gateway("a", secure("SIMPLE", "site")) +
      gateway("b", secure("SIMPLE", "site", "b.example")) +
      secret("site", pair),
    expected: ["a", "b"].map(
      (name) =>
        `Warning [IST0138] (Gateway shop/${name}) spec.servers[0].tls.credentialName: the certificate "site" is shown by several Gateways (shop/a, shop/b): a client that reuses its connection for another name would get 404\n  Put their servers into one Gateway, or use a certificate for each.`,
    ),
  },
  {
    name: "one certificate at two Gateways whose selectors differ and choose the same pods",
    input:
      outside +
      gateway("a", secure("SIMPLE", "site")) +
      gateway("b", secure("SIMPLE", "site", "b.example"), "{}").replace("{ {} }", "{}") +
      secret("site", pair),
    expected: ["a", "b"].map((name) => new RegExp(`\\[IST0138\\] \\(Gateway shop/${name}\\)`)),
  },
  {
    name: "one pair of files at two Gateways",
    input:
      outside +
      ["a", "b"]
        .map((name) =>
          gateway(
            name,
            `{ port: { number: 443, name: a, protocol: HTTPS }, hosts: [${name}.example], tls: { mode: SIMPLE, serverCertificate: /c.pem, privateKey: /k.pem } }`,
          ),
        )
        .join(""),
    expected: ["a", "b"].map(
      (name) =>
        new RegExp(
          `\\[IST0138\\] \\(Gateway shop/${name}\\) spec.servers\\[0\\].tls.serverCertificate: the certificate "/c.pem"`,
        ),
    ),
  },
  {
    name: "a sign-in without gateway, Secret, Service and pages",
    input: login(
      "{ gateways: [publik], clientID: c, clientSecret: { name: c }, provider: { issuer: https://i, backend: { host: login } } }",
    ),
    expected: [
      'Error [IST0101] (BrowserLogin shop/login) spec.gateways[0]: gateway "shop/publik" not found\n  Did you mean "shop/public"?',
      'Error [IST0101] (BrowserLogin shop/login) spec.clientSecret.name: secret "shop/c" not found, so nobody can sign in\n  Put the client\'s secret under "client-secret" of that Secret.',
      'Error [IST0101] (BrowserLogin shop/login) spec.provider.backend.host: host "login.shop.svc.cluster.local" not found\n  The gateway redeems codes there.',
      "Warning [IST0167] (BrowserLogin shop/login) spec.gateways: no VirtualService is bound to its gateways, so there are no pages to sign in for\n  Bind the VirtualService of the pages to one of the gateways.",
    ],
  },
  {
    name: "a sign-in for another host, at a path that a route names, with an empty Secret and a port that is none",
    input:
      virtualService(
        "{ hosts: [shop.example.com], gateways: [public], http: [{ match: [{ uri: { prefix: /oauth2/ } }], route: [{ destination: { host: catalog } }] }] }",
      ) +
      secret("c", {}, "shop") +
      login(
        "{ gateways: [public], hosts: [other.test], clientID: c, clientSecret: { name: c }, provider: { issuer: https://i, backend: { host: catalog, port: { number: 81 } } } }",
      ),
    expected: [
      'Error [IST0101] (BrowserLogin shop/login) spec.clientSecret.name: secret "shop/c" has no key "client-secret", so nobody can sign in\n  Put the client\'s secret under "client-secret" of that Secret.',
      'Error [IST0101] (BrowserLogin shop/login) spec.provider.backend.port.number: service "catalog.shop.svc.cluster.local" has no port 81\n  The gateway redeems codes there.',
      'Warning [IST0132] (BrowserLogin shop/login) spec.hosts[0]: no VirtualService of its gateways has a host in common with "other.test"\n  They have shop.example.com.',
      'Warning [TUL0009] (BrowserLogin shop/login) spec.redirectPath: /oauth2/callback is among the paths of VirtualService "shop/rule", which no longer gets its requests\n  Choose a path that no route names.',
    ],
  },
  {
    name: "a good sign-in",
    input:
      virtualService(
        "{ hosts: [shop.example.com], gateways: [public], http: [{ route: [{ destination: { host: catalog } }] }] }",
      ) +
      secret("c", { "client-secret": "s" }, "shop") +
      login(
        "{ gateways: [public], hosts: ['*.example.com'], clientID: c, clientSecret: { name: c }, provider: { issuer: https://i, backend: { host: catalog } } }",
      ),
    expected: [],
  },
  {
    name: "routes by claims at a gateway that checks tokens",
    input:
      virtualService(
        "{ hosts: [shop.example.com], gateways: [public], http: [{ match: [{ headers: { '@request.auth.claims.groups': { exact: admin } } }], route: [{ destination: { host: catalog } }] }] }",
      ) +
      policy(
        "RequestAuthentication",
        `{ selector: { matchLabels: { tulle: ingressgateway } }, jwtRules: [{ issuer: "https://i", audiences: [a] }] }`,
        "gateway",
        "tulle-system",
      ),
    expected: [],
  },
];
