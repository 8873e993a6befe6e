// The authorization server as pods of a cluster. Its settings are those of its configuration file; what nobody else
// may read comes from a Secret.
import { programUser } from "../names.ts";
import { partOf } from "./installed-labels.ts";
import { disruptionBudget, pullSecrets, restricted, scheduling, spread } from "./pod-parts.ts";
import {
  choose,
  type Expression,
  isSet,
  joined,
  json,
  type Manifest,
  not,
  releaseNamespace,
  type Template,
  value,
  when,
} from "./template.ts";

const name = value("authorization-server.name");
const port = 9400;
const stateFolder = "/var/lib/tulle";
const configFolder = "/etc/tulle";
const configFile = "authorization-server.json";

export function authorizationServerManifests(): readonly Manifest[] {
  const selector = { app: name };
  const metadata = { name, namespace: releaseNamespace, labels: { ...selector, ...partOf("authorization-server") } };
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata, automountServiceAccountToken: false },
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata,
      data: { [configFile]: json("authorization-server.config") },
    },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: { selector, ports: [{ name: "http", port: 80, targetPort: port, protocol: "TCP" }] },
    },
    disruptionBudget(metadata, selector),
    when(isSet("authorization-server.persistence.enabled"), {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata,
      spec: {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: value("authorization-server.persistence.size") } },
      },
    }),
    deployment(metadata, selector),
  ];
}

function deployment(
  metadata: { readonly [name: string]: Template },
  selector: Readonly<Record<string, Expression>>,
): Manifest {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata,
    spec: {
      replicas: value("authorization-server.replicaCount"),
      // Two programs on one SQLite file would be one too many.
      strategy: {
        type: choose(isSet("authorization-server.persistence.enabled"), "Recreate", "RollingUpdate"),
      },
      selector: { matchLabels: selector },
      template: {
        metadata: {
          labels: { ...selector, ...partOf("authorization-server") },
          annotations: value("authorization-server.podAnnotations"),
        },
        spec: {
          serviceAccountName: name,
          automountServiceAccountToken: false,
          ...pullSecrets,
          securityContext: {
            runAsUser: programUser,
            runAsGroup: programUser,
            fsGroup: programUser,
            runAsNonRoot: true,
          },
          ...scheduling("authorization-server"),
          ...spread(selector),
          containers: [container()],
          volumes: [
            { name: "config", configMap: { name } },
            when(isSet("authorization-server.persistence.enabled"), {
              name: "state",
              persistentVolumeClaim: { claimName: name },
            }),
            when(not(isSet("authorization-server.persistence.enabled")), { name: "state", emptyDir: {} }),
          ],
        },
      },
    },
  };
}

function container(): Template {
  return {
    name: "authorization-server",
    image: joined(value("global.hub"), "/authorization-server:", value("global.tag")),
    imagePullPolicy: value("global.imagePullPolicy"),
    args: [
      `--config=${configFolder}/${configFile}`,
      "--host=0.0.0.0",
      `--port=${port}`,
      `--data-dir=${stateFolder}`,
      joined("--issuer=", value("authorization-server.issuer")),
    ],
    envFrom: when(isSet("authorization-server.secret"), [
      { secretRef: { name: value("authorization-server.secret") } },
    ]),
    ports: [{ name: "http", containerPort: port, protocol: "TCP" }],
    readinessProbe: { httpGet: { path: "/readyz", port: "http" }, periodSeconds: 5, timeoutSeconds: 5 },
    livenessProbe: { httpGet: { path: "/healthz", port: "http" }, periodSeconds: 20, timeoutSeconds: 10 },
    resources: value("authorization-server.resources"),
    securityContext: restricted,
    volumeMounts: [
      { name: "config", mountPath: configFolder, readOnly: true },
      { name: "state", mountPath: stateFolder },
    ],
  };
}
