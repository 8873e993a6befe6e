// A gateway: pods that are a proxy and nothing else, and the Service by which clients come in. The proxy is injected,
// so that it is of the control plane's version, whoever made the pod.
import { injectedContainers, proxyUser, revisionLabel } from "../names.ts";
import { partOf } from "./installed-labels.ts";
import { disruptionBudget, pullSecrets, scheduling, spread } from "./pod-parts.ts";
import { type Manifest, isSet, merged, not, releaseNamespace, type Template, value, when } from "./template.ts";

const name = value("gateway.name");
const selector = merged({ app: name }, "gateway.labels");

export function gatewayManifests(): readonly Manifest[] {
  const labels = { ...partOf("gateway"), app: name, [revisionLabel]: value("gateway.revision") };
  const metadata = { name, namespace: releaseNamespace, labels };
  const scaled = { apiVersion: "apps/v1", kind: "Deployment", name };
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: {
        name,
        namespace: releaseNamespace,
        labels: merged(labels, "gateway.labels"),
        annotations: value("gateway.service.annotations"),
      },
      spec: {
        type: value("gateway.service.type"),
        selector,
        ports: value("gateway.service.ports"),
        // Of one that nobody outside reaches, the API server refuses the field.
        externalTrafficPolicy: when(
          not({ is: "equal", path: "gateway.service.type", to: "ClusterIP" }),
          value("gateway.service.externalTrafficPolicy"),
        ),
      },
    },
    disruptionBudget(metadata, selector),
    when(isSet("gateway.autoscaling.enabled"), {
      apiVersion: "autoscaling/v2",
      kind: "HorizontalPodAutoscaler",
      metadata,
      spec: {
        scaleTargetRef: scaled,
        minReplicas: value("gateway.autoscaling.minReplicas"),
        maxReplicas: value("gateway.autoscaling.maxReplicas"),
        metrics: [
          {
            type: "Resource",
            resource: {
              name: "cpu",
              target: {
                type: "Utilization",
                averageUtilization: value("gateway.autoscaling.targetCPUUtilizationPercentage"),
              },
            },
          },
        ],
      },
    }),
    deployment(metadata),
  ];
}

function deployment(metadata: { readonly [name: string]: Template }): Manifest {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata,
    spec: {
      // Left out where another decides: whoever applies this again would set it back.
      replicas: when(not(isSet("gateway.autoscaling.enabled")), value("gateway.replicaCount")),
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      selector: { matchLabels: selector },
      template: {
        metadata: {
          labels: merged(
            {
              app: name,
              [revisionLabel]: value("gateway.revision"),
              "sidecar.tulle.io/inject": "true",
            },
            "gateway.labels",
          ),
          annotations: merged({ "inject.istio.io/templates": "gateway" }, "gateway.podAnnotations"),
        },
        spec: {
          serviceAccountName: name,
          ...pullSecrets,
          terminationGracePeriodSeconds: value("gateway.terminationGracePeriodSeconds"),
          securityContext: { runAsUser: proxyUser, runAsGroup: proxyUser, runAsNonRoot: true },
          ...scheduling("gateway"),
          ...spread(selector),
          containers: [
            {
              name: injectedContainers.proxy,
              // What the injection puts in.
              image: "auto",
              // Without a word of its own the API server would say Always, since the image names no tag.
              imagePullPolicy: value("global.imagePullPolicy"),
              resources: value("gateway.resources"),
            },
          ],
        },
      },
    },
  };
}
