/**
 * Traffic policy of a DestinationRule: load balancing, connection pools, outlier detection, TLS. Field list of Istio
 * 1.31.
 */
import {
  boolean,
  defaulted,
  deprecated,
  enumeration,
  integer,
  list,
  map,
  notYet,
  number,
  object,
  optional,
  required,
  string,
} from "../schema/schema.ts";
import type { ObjectValue, Report } from "../schema/schema.ts";
import type { Format } from "../schema/formats.ts";
import { duration, durationOrZero, nonEmpty, tunnelHost } from "../schema/formats.ts";
import {
  attributesDiffer,
  localErrorsAreSplit,
  localitiesFit,
  localityOrZone,
  protocolIsClear,
  ringIsSaidOnce,
  saysSomething,
  tableFits,
  tunnelAlone,
} from "./traffic-policy-rules.ts";

const tunnelProtocol: Format = {
  name: "protocol of a tunnel",
  description: "CONNECT or POST",
  check: (value) => (["", "CONNECT", "POST"].includes(value) ? undefined : "it is neither CONNECT nor POST"),
};

const uint32 = integer({ minimum: 0, maximum: 4_294_967_295 });
const percent = integer({ minimum: 0, maximum: 100 });
const port = integer({ minimum: 1, maximum: 65_535 });

const ringHash = object({ minimumRingSize: notYet(integer({ minimum: 0 }), "Smallest number of points on the ring.") });
const maglev = object(
  { tableSize: notYet(integer({ minimum: 0 }), "Size of the Maglev table, a prime.") },
  { rules: [tableFits] },
);

const consistentHash = object(
  {
    httpHeaderName: notYet(string(nonEmpty), "Hash of a request header."),
    httpCookie: notYet(
      object(
        {
          name: required(string(nonEmpty), "Name of the cookie."),
          path: notYet(string(), "Path of a cookie that the proxy makes."),
          ttl: notYet(string(durationOrZero), "Life of a cookie that the proxy makes; 0s makes a session cookie."),
          attributes: notYet(
            list(object({ name: required(string(nonEmpty), "Name."), value: optional(string(), "Value.") })),
            "Further attributes of the cookie.",
          ),
        },
        { rules: [({ attributes }, report) => attributesDiffer(attributes, report)] },
      ),
      "Hash of a cookie.",
    ),
    useSourceIp: notYet(boolean(), "Hash of the client's address."),
    httpQueryParameterName: notYet(string(nonEmpty), "Hash of a query parameter."),
    ringHash: notYet(ringHash, "Ring hash."),
    maglev: notYet(maglev, "Maglev."),
    minimumRingSize: deprecated(
      notYet(integer({ minimum: 0 }), "Smallest number of points on the ring."),
      "ringHash.minimumRingSize",
    ),
  },
  {
    exactlyOne: [["httpHeaderName", "httpCookie", "useSourceIp", "httpQueryParameterName"]],
    atMostOne: [["ringHash", "maglev"]],
    rules: [ringIsSaidOnce],
  },
);

const failover = list(
  object({ from: notYet(string(), "Region that fails."), to: notYet(string(), "Region that takes over.") }),
);
const failoverPriority = list(string());

const localityLbSetting = object(
  {
    distribute: notYet(
      list(
        object({
          from: notYet(string(nonEmpty), "Where the request comes from: region/zone/sub-zone."),
          to: notYet(map(integer({ minimum: 0, maximum: 100 })), "Share of each locality, in percent."),
        }),
      ),
      "Shares of localities.",
    ),
    failover: notYet(failover, "Which region takes over."),
    failoverPriority: notYet(failoverPriority, "Labels whose equality makes an endpoint preferred, in order."),
    enabled: notYet(boolean(), "Switches locality load balancing."),
  },
  { rules: [localitiesFit] },
);

const loadBalancer = object(
  {
    simple: optional(
      enumeration(["UNSPECIFIED", "LEAST_CONN", "RANDOM", "PASSTHROUGH", "ROUND_ROBIN", "LEAST_REQUEST"], {
        notImplemented: ["PASSTHROUGH"],
        deprecated: { LEAST_CONN: "LEAST_REQUEST" },
      }),
      "Algorithm; LEAST_REQUEST when missing.",
    ),
    consistentHash: notYet(consistentHash, "Requests with the same property go to the same endpoint."),
    localityLbSetting: notYet(localityLbSetting, "Preference for near endpoints."),
    zoneAwareLbSetting: notYet(
      object({
        enabled: notYet(boolean(), "Switch."),
        failover: notYet(failover, "Which region takes over."),
        failoverPriority: notYet(failoverPriority, "Labels whose equality makes an endpoint preferred, in order."),
        minClusterSize: notYet(integer({ minimum: 0 }), "Endpoints below which zones are not looked at."),
      }),
      "Zone-aware routing.",
    ),
    warmupDurationSecs: deprecated(
      notYet(string(duration), "Time in which a new endpoint gets its full share."),
      "warmup.duration",
    ),
    warmup: notYet(
      object({
        duration: required(string(duration), "Time in which a new endpoint gets its full share."),
        minimumPercent: notYet(number({ minimum: 0, maximum: 100 }), "Share at the start."),
        aggression: notYet(number({ minimum: 1 }), "How fast the share grows."),
      }),
      "Slow start of new endpoints.",
    ),
  },
  { atMostOne: [["simple", "consistentHash"]], rules: [localityOrZone] },
);

const connectionPoolFields = {
  tcp: optional(
    object({
      maxConnections: optional(integer({ minimum: 1, maximum: 2_147_483_647 }), "Most connections."),
      connectTimeout: optional(string(duration), "Time limit of a connection attempt."),
      tcpKeepalive: optional(
        object({
          probes: optional(uint32, "Probes without answer before the connection is dead."),
          time: optional(string(duration), "Idle time before the first probe."),
          interval: optional(string(duration), "Time between probes."),
        }),
        "TCP keep-alive.",
      ),
      maxConnectionDuration: optional(string(duration), "Longest life of a connection."),
      idleTimeout: optional(string(durationOrZero), "Idle time after which a connection is closed."),
    }),
    "Limits of TCP connections.",
  ),
  http: optional(
    object(
      {
        http1MaxPendingRequests: optional(
          integer({ minimum: 0, maximum: 2_147_483_647 }),
          "Most requests that wait for a connection.",
        ),
        http2MaxRequests: optional(integer({ minimum: 0, maximum: 2_147_483_647 }), "Most requests at a time."),
        maxRequestsPerConnection: optional(
          integer({ minimum: 0, maximum: 536_870_912 }),
          "Requests after which a connection is left.",
        ),
        maxRetries: optional(integer({ minimum: 0, maximum: 2_147_483_647 }), "Most retries at a time."),
        idleTimeout: optional(string(durationOrZero), "Idle time after which a connection is closed."),
        h2UpgradePolicy: optional(
          enumeration(["DEFAULT", "DO_NOT_UPGRADE", "UPGRADE"]),
          "Whether HTTP/1.1 becomes HTTP/2.",
        ),
        useClientProtocol: optional(boolean(), "Keeps the client's protocol."),
        maxConcurrentStreams: optional(
          integer({ minimum: 0, maximum: 2_147_483_647 }),
          "Most streams of an HTTP/2 connection.",
        ),
        http2KeepAlive: optional(
          object({
            interval: required(string(duration), "Time between pings."),
            timeout: required(string(duration), "Time limit of an answer."),
          }),
          "HTTP/2 keep-alive pings.",
        ),
      },
      { rules: [protocolIsClear] },
    ),
    "Limits of HTTP requests.",
  ),
} as const;

const connectionPool = object(connectionPoolFields, { rules: [saysSomething("connection pool")] });

const outlierDetectionFields = {
  consecutiveErrors: deprecated(
    optional(integer({ minimum: 0 }), "Errors in a row before ejection."),
    "consecutive5xxErrors",
  ),
  splitExternalLocalOriginErrors: optional(boolean(), "Count connection failures apart."),
  consecutiveLocalOriginFailures: optional(uint32, "Connection failures in a row before ejection."),
  consecutiveGatewayErrors: optional(uint32, "Answers 502, 503, 504 in a row before ejection."),
  consecutive5xxErrors: optional(uint32, "Answers 5xx in a row before ejection."),
  interval: optional(string(duration), "Time between checks."),
  baseEjectionTime: optional(string(duration), "Time of the first ejection."),
  maxEjectionPercent: optional(percent, "Largest share of ejected endpoints."),
  minHealthPercent: optional(percent, "Share of healthy endpoints below which nothing is ejected."),
  outlierDetectionHttpErrorCodes: notYet(list(integer({ minimum: 100, maximum: 599 })), "Codes that count."),
} as const;

const outlierDetection = object(outlierDetectionFields, { rules: [localErrorsAreSplit] });

const clientTlsFields = {
  mode: optional(
    enumeration(["DISABLE", "SIMPLE", "MUTUAL", "ISTIO_MUTUAL"]),
    "How connections are encrypted: not at all, with the server's certificate, with both sides', with those of the mesh.",
  ),
  clientCertificate: optional(string(nonEmpty), "File with the client certificate."),
  privateKey: optional(string(nonEmpty), "File with its key."),
  caCertificates: optional(
    string(nonEmpty),
    "File with the authorities that the server is checked against; those of the machine when missing.",
  ),
  credentialName: optional(string(nonEmpty), "Secret that holds them, for gateways."),
  subjectAltNames: optional(list(string(nonEmpty)), "Names of which the server certificate has to carry one."),
  sni: optional(string(nonEmpty), "Server name sent; the request's host when missing."),
  insecureSkipVerify: optional(boolean(), "No check of the server certificate."),
  caCrl: optional(string(nonEmpty), "File with revoked certificates."),
} as const;

const clientTls = object(clientTlsFields, { rules: [credentialsFit] });

/** Istio's validation of client TLS settings. */
function credentialsFit(tls: ObjectValue<typeof clientTlsFields>, report: Report): void {
  const { mode = "DISABLE", credentialName, insecureSkipVerify = false } = tls;
  if (mode !== "SIMPLE" && mode !== "MUTUAL") return;
  const files = (["clientCertificate", "privateKey", "caCertificates", "caCrl"] as const).filter(
    (name) => tls[name] !== undefined,
  );
  if (credentialName !== undefined && files.length > 0) {
    report({ path: [files[0]!], message: `"${files[0]}" cannot stand beside "credentialName"` });
  }
  if (mode === "MUTUAL" && credentialName === undefined) {
    for (const name of ["clientCertificate", "privateKey"] as const) {
      if (tls[name] === undefined) report({ message: `the mode MUTUAL needs "${name}", or "credentialName"` });
    }
  }
  const checks = (["caCertificates", "subjectAltNames", "caCrl"] as const).filter((name) => tls[name] !== undefined);
  if (insecureSkipVerify && checks.length > 0) {
    report({ path: [checks[0]!], message: `"${checks[0]}" has no effect where "insecureSkipVerify" is true` });
  }
}

const perPortFields = {
  loadBalancer: optional(loadBalancer, "How endpoints are chosen."),
  connectionPool: optional(connectionPool, "Limits of connections and requests."),
  outlierDetection: optional(outlierDetection, "When an endpoint is left out."),
  tls: optional(clientTls, "TLS towards the endpoints; mutual TLS to workloads that have a proxy when missing."),
} as const;

/** Istio looks for the port's number alone: any other chooses nothing. */
const portSelector = object({
  number: defaulted(integer({ minimum: 0, maximum: 4_294_967_295 }), 0, "Port of the Service."),
});

const trafficPolicyFields = {
  ...perPortFields,
  portLevelSettings: optional(
    list(
      object(
        { port: required(portSelector, "Which port."), ...perPortFields },
        { rules: [saysSomething("policy of the port", ["port"])] },
      ),
    ),
    "Settings for single ports; those of the other fields do not hold for them.",
  ),
  tunnel: notYet(
    object({
      protocol: notYet(string(tunnelProtocol), "CONNECT or POST."),
      targetHost: required(string(tunnelHost), "Host to tunnel to."),
      targetPort: required(port, "Port to tunnel to."),
    }),
    "Tunnel through another proxy.",
  ),
  proxyProtocol: notYet(
    object({ version: notYet(enumeration(["V1", "V2"]), "Version.") }),
    "PROXY protocol towards the endpoints.",
  ),
  retryBudget: optional(
    object({
      percent: optional(number({ minimum: 0, maximum: 100 }), "Share of requests that may be retries."),
      minRetryConcurrency: optional(uint32, "Retries that are always allowed."),
      budgetInterval: notYet(string(durationOrZero), "For how long requests count; as long as they run when missing."),
    }),
    "Limit of retries as a share of requests.",
  ),
} as const;

export const trafficPolicy = object(trafficPolicyFields, { rules: [saysSomething("traffic policy"), tunnelAlone] });
