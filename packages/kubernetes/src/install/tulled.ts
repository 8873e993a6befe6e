// The control plane: its rights, its pods, its Service, and the webhooks by which it injects and checks.
import {
  controlPlanePorts,
  controlPlaneStateFolder,
  injectorWebhook,
  joinPort,
  joinService,
  podNamespaceVariable,
  podNameVariable,
  programUser,
  serviceAccountVariable,
} from "../names.ts";
import { disruptionBudget, pullSecrets, restricted, scheduling, spread } from "./pod-parts.ts";
import {
  isEqual,
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
import { ofRevision, revision, tulledLabels, tulledName, tulledSelector } from "./tulled-names.ts";
import { tulledRights } from "./tulled-rights.ts";
import { injectorConfiguration, validatorConfiguration } from "./webhooks.ts";

/** What `readValues` of inject/ reads. */
const injectorValues = {
  global: "global",
  cni: "global.cni",
  revision: "tulled.revision",
  sidecarInjectorWebhook: "tulled.sidecarInjectorWebhook",
} as const;

const ports = Object.values(controlPlanePorts);
const machinesJoin = isSet("tulled.machines.enabled");

export function tulledManifests(): readonly Manifest[] {
  const metadata = { name: tulledName, namespace: releaseNamespace, labels: tulledLabels };
  return [
    ...tulledRights(),
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { ...metadata, name: ofRevision(injectorWebhook("default")) },
      data: { values: json(injectorValues) },
    },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: {
        selector: tulledSelector,
        ports: ports.map(({ name, port, targetPort }) => ({ name, port, targetPort, protocol: "TCP" })),
      },
    },
    when(machinesJoin, joinServiceManifest(metadata)),
    disruptionBudget(metadata, tulledSelector),
    when(isSet("global.networkPolicy.enabled"), {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata,
      spec: {
        podSelector: { matchLabels: tulledSelector },
        policyTypes: ["Ingress"],
        // From everywhere: workloads have to reach it, and API servers and Prometheus come from addresses of nodes.
        ingress: [
          { ports: ports.map(({ targetPort }) => ({ port: targetPort, protocol: "TCP" })) },
          when(machinesJoin, { ports: [{ port: joinPort.targetPort, protocol: "TCP" }] }),
        ],
      },
    }),
    deployment(metadata),
    when(
      isSet("tulled.sidecarInjectorWebhook.enabled"),
      injectorConfiguration({ name: ofRevision(injectorWebhook("default")), selects: revision }),
    ),
    when(isSet("tulled.validationWebhook.enabled"), validatorConfiguration()),
  ];
}

/** Of every pod that serves: each knows the machines that have come to another. */
function joinServiceManifest(metadata: { readonly [name: string]: Template }): Manifest {
  const { name, port, targetPort } = joinPort;
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      ...metadata,
      name: ofRevision(joinService("default")),
      annotations: value("tulled.machines.service.annotations"),
    },
    spec: {
      type: value("tulled.machines.service.type"),
      externalTrafficPolicy: when(
        not(isEqual("tulled.machines.service.type", "ClusterIP")),
        value("tulled.machines.service.externalTrafficPolicy"),
      ),
      selector: tulledSelector,
      ports: [{ name, port, targetPort, protocol: "TCP" }],
    },
  };
}

function deployment(metadata: { readonly [name: string]: Template }): Manifest {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata,
    spec: {
      replicas: value("tulled.replicaCount"),
      // A new one serves before an old one goes: proxies move over, and none is without.
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      selector: { matchLabels: tulledSelector },
      template: {
        metadata: {
          // It cannot be injected by itself.
          labels: { ...tulledLabels, "sidecar.tulle.io/inject": "false", "sidecar.istio.io/inject": "false" },
          annotations: value("tulled.podAnnotations"),
        },
        spec: {
          serviceAccountName: tulledName,
          ...pullSecrets,
          securityContext: {
            runAsUser: programUser,
            runAsGroup: programUser,
            fsGroup: programUser,
            runAsNonRoot: true,
          },
          ...scheduling("tulled"),
          ...spread(tulledSelector),
          containers: [container()],
          volumes: [{ name: "state", emptyDir: {} }],
        },
      },
    },
  };
}

function container(): Template {
  const field = (name: string, fieldPath: string): Template => ({ name, valueFrom: { fieldRef: { fieldPath } } });
  // Of the port that is served last, and not before API servers believe it: whoever waits for the Deployment may apply
  // what the webhooks are asked about.
  const httpGet = { path: "/ready", port: controlPlanePorts.webhook.name, scheme: "HTTPS" };
  const ready = { httpGet, periodSeconds: 3, timeoutSeconds: 5 };
  const answers = { httpGet: { path: "/version", port: controlPlanePorts.http.name }, timeoutSeconds: 10 };
  return {
    name: "tulled",
    image: joined(value("global.hub"), "/tulled:", value("global.tag")),
    imagePullPolicy: value("global.imagePullPolicy"),
    args: controlPlaneArguments(),
    env: [
      field(podNameVariable, "metadata.name"),
      field(podNamespaceVariable, "metadata.namespace"),
      field(serviceAccountVariable, "spec.serviceAccountName"),
    ],
    ports: [
      ...ports.map(({ name, targetPort }) => ({ name, containerPort: targetPort, protocol: "TCP" })),
      when(machinesJoin, { name: joinPort.name, containerPort: joinPort.targetPort, protocol: "TCP" }),
    ],
    readinessProbe: { ...ready, failureThreshold: 3 },
    // A program that hangs; one that only waits for the API server is left alone.
    livenessProbe: { ...answers, periodSeconds: 20, failureThreshold: 6, initialDelaySeconds: 30 },
    resources: value("tulled.resources"),
    securityContext: restricted,
    volumeMounts: [{ name: "state", mountPath: controlPlaneStateFolder }],
  };
}

function controlPlaneArguments(): readonly Template[] {
  return [
    "--kubernetes",
    joined("--revision=", revision),
    `--state=${controlPlaneStateFolder}`,
    joined("--trust-domain=", value("global.trustDomain")),
    joined("--cluster-id=", value("global.multiCluster.clusterName")),
    joined("--log-level=", value("tulled.logLevel")),
    when(isSet("tulled.watchIstioResources"), "--istio-resources"),
    when(machinesJoin, `--join-address=0.0.0.0:${joinPort.targetPort}`),
    when(isSet("tulled.machines.address"), joined("--join-advertise=", value("tulled.machines.address"))),
  ];
}
