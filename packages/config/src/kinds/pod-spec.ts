/** What a pod runs: shared by Pod and by the template of a Deployment. */
import {
  boolean,
  defaulted,
  enumeration,
  integer,
  intOrString,
  list,
  map,
  object,
  optional,
  required,
  string,
} from "../schema/schema.ts";
import type { Infer, Report } from "../schema/schema.ts";
import { containerResource, dnsLabel, dnsSubdomain, nonEmpty, podFieldPath, secretKey } from "../schema/formats.ts";
import { labelKey } from "../schema/label-formats.ts";

const port = integer({ minimum: 1, maximum: 65_535 });

const httpGet = object({
  path: optional(string(), "Path; `/` when missing."),
  port: required(intOrString(), "Port, by number or by name."),
  host: optional(string(), "Host; the pod's address when missing."),
  scheme: optional(enumeration(["HTTP", "HTTPS"]), "Scheme."),
  httpHeaders: optional(
    list(object({ name: required(string(nonEmpty), "Name."), value: required(string(), "Value.") })),
    "Request headers.",
  ),
});

const probe = object(
  {
    httpGet: optional(httpGet, "Answer 200 to 399 means healthy."),
    tcpSocket: optional(
      object({ port: required(intOrString(), "Port."), host: optional(string(), "Host.") }),
      "An accepted connection means healthy.",
    ),
    exec: optional(object({ command: optional(list(string()), "Command.") }), "Exit code 0 means healthy."),
    initialDelaySeconds: optional(integer({ minimum: 0 }), "Time before the first probe."),
    periodSeconds: optional(integer({ minimum: 0 }), "Time between probes."),
    timeoutSeconds: optional(integer({ minimum: 0 }), "Time limit of a probe."),
    successThreshold: optional(integer({ minimum: 0 }), "Successes in a row until healthy."),
    failureThreshold: optional(integer({ minimum: 0 }), "Failures in a row until unhealthy."),
  },
  { unread: ["grpc", "terminationGracePeriodSeconds"] },
);

const mayBeMissing = optional(boolean(), "Whether the program starts without it.");

function keyOf(kind: "ConfigMap" | "Secret") {
  return object({
    name: required(string(nonEmpty), `${kind} of the pod's namespace.`),
    key: required(string(secretKey), "Key in its data."),
    optional: mayBeMissing,
  });
}

/** Kubernetes (ValidateResourceFieldSelector): units alone. */
const cpuDivisors = ["0", "1", "1m"];
const byteDivisors = [
  "0",
  ...["", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].map((unit) => `1${unit}`),
];

/** A divisor is a number or a text, which no schema says. */
function divisorFits(source: { readonly resource: string; readonly divisor?: unknown }, report: Report): void {
  const { resource, divisor } = source;
  const divisors = resource.endsWith(".cpu") ? cpuDivisors : byteDivisors;
  const text = typeof divisor === "string" ? divisor : JSON.stringify(divisor ?? 1);
  if (divisors.includes(text)) return;
  const message = `${JSON.stringify(divisor)} is no unit of ${resource}: ${divisors.slice(1).join(", ")}`;
  report({ path: ["divisor"], message });
}

const valueSource = object(
  {
    fieldRef: optional(
      object({
        apiVersion: optional(string(), "Version of the field's schema."),
        fieldPath: required(string(podFieldPath), "Path of the field."),
      }),
      "A field of the pod.",
    ),
    configMapKeyRef: optional(keyOf("ConfigMap"), "A text of a ConfigMap."),
    secretKeyRef: optional(keyOf("Secret"), "A value of a Secret."),
    resourceFieldRef: optional(
      object(
        {
          containerName: optional(string(), "Container; the variable's own when missing."),
          resource: required(string(containerResource), "Limit or request of the container."),
        },
        { unread: ["divisor"], rules: [divisorFits] },
      ),
      "What a container may use.",
    ),
  },
  {
    unread: ["fileKeyRef"],
    atMostOne: [["fieldRef", "configMapKeyRef", "secretKeyRef", "resourceFieldRef"]],
  },
);

function valueOrSource(
  { value, valueFrom }: { readonly value?: string; readonly valueFrom?: unknown },
  report: Report,
): void {
  if (value !== undefined && value !== "" && valueFrom !== undefined)
    report({ path: ["valueFrom"], message: "a variable has a value or valueFrom, not both" });
}

function allOf(kind: "ConfigMap" | "Secret") {
  return object({
    name: required(string(dnsSubdomain), `${kind} of the pod's namespace.`),
    optional: mayBeMissing,
  });
}

const variablesSource = object(
  {
    prefix: optional(string(), "Put before the name of each variable."),
    configMapRef: optional(allOf("ConfigMap"), "All texts of a ConfigMap."),
    secretRef: optional(allOf("Secret"), "All values of a Secret."),
  },
  { exactlyOne: [["configMapRef", "secretRef"]] },
);

const identity = {
  runAsUser: optional(integer({ minimum: 0 }), "Number of the user."),
  runAsGroup: optional(integer({ minimum: 0 }), "Number of the group."),
};
const unreadSecurity = [
  "appArmorProfile",
  "runAsNonRoot",
  "seLinuxOptions",
  "seccompProfile",
  "windowsOptions",
] as const;

const containerSecurity = object(identity, {
  unread: [
    ...unreadSecurity,
    "allowPrivilegeEscalation",
    "capabilities",
    "privileged",
    "procMount",
    "readOnlyRootFilesystem",
  ],
});

const podSecurity = object(
  {
    ...identity,
    fsGroup: optional(integer({ minimum: 0 }), "Group of the volumes, and one more of every program."),
    supplementalGroups: optional(list(integer({ minimum: 0 })), "More groups of every program."),
  },
  { unread: [...unreadSecurity, "fsGroupChangePolicy", "seLinuxChangePolicy", "supplementalGroupsPolicy", "sysctls"] },
);

const container = object(
  {
    name: required(string(dnsLabel), "Name."),
    image: optional(string(), "Image."),
    command: optional(list(string()), "Program in the image."),
    args: optional(list(string()), "Its arguments."),
    workingDir: optional(string(), "Working directory."),
    ports: optional(
      list(
        object(
          {
            name: optional(string(dnsLabel), "Name."),
            containerPort: required(port, "Port that the container listens on."),
            protocol: defaulted(enumeration(["TCP", "UDP", "SCTP"]), "TCP", "Transport protocol."),
          },
          { unread: ["hostIP", "hostPort"] },
        ),
      ),
      "Ports.",
    ),
    env: optional(
      list(
        object(
          {
            name: required(string(nonEmpty), "Name."),
            value: optional(string(), "Value; empty when missing. `$(NAME)` stands for a variable before it."),
            valueFrom: optional(valueSource, "Where the value comes from instead."),
          },
          { rules: [valueOrSource] },
        ),
      ),
      "Environment variables.",
    ),
    envFrom: optional(list(variablesSource), "Environment variables by the dozen; those of `env` beat them."),
    readinessProbe: optional(probe, "When the container gets requests."),
    livenessProbe: optional(probe, "When the container is restarted."),
    startupProbe: optional(probe, "When the other probes begin."),
    securityContext: optional(containerSecurity, "As whom the program runs."),
  },
  {
    unread: [
      "imagePullPolicy",
      "lifecycle",
      "resizePolicy",
      "resources",
      "restartPolicy",
      "stdin",
      "stdinOnce",
      "terminationMessagePath",
      "terminationMessagePolicy",
      "tty",
      "volumeDevices",
      "volumeMounts",
    ],
  },
);

export const podSpec = object(
  {
    containers: required(list(container, { minItems: 1, uniqueBy: "name" }), "Containers."),
    initContainers: optional(list(container, { uniqueBy: "name" }), "Containers that run before."),
    serviceAccountName: optional(string(), "ServiceAccount; `default` when missing."),
    serviceAccount: optional(string(), "Old name of serviceAccountName."),
    hostNetwork: optional(boolean(), "Whether the pod uses the node's network; no sidecar then."),
    nodeName: optional(string(), "Node."),
    hostname: optional(string(), "Host name."),
    subdomain: optional(string(), "Subdomain of the headless Service."),
    restartPolicy: optional(enumeration(["Always", "OnFailure", "Never"]), "When containers start again."),
    terminationGracePeriodSeconds: optional(integer({ minimum: 0 }), "Time between SIGTERM and SIGKILL."),
    nodeSelector: optional(map(string(), labelKey), "Labels of the node."),
    securityContext: optional(podSecurity, "As whom the pod's programs run."),
  },
  {
    unread: [
      "activeDeadlineSeconds",
      "affinity",
      "automountServiceAccountToken",
      "dnsConfig",
      "dnsPolicy",
      "enableServiceLinks",
      "ephemeralContainers",
      "hostAliases",
      "hostIPC",
      "hostPID",
      "hostUsers",
      "imagePullSecrets",
      "os",
      "overhead",
      "preemptionPolicy",
      "priority",
      "priorityClassName",
      "readinessGates",
      "resourceClaims",
      "resources",
      "runtimeClassName",
      "schedulerName",
      "schedulingGates",
      "setHostnameAsFQDN",
      "shareProcessNamespace",
      "tolerations",
      "topologySpreadConstraints",
      "volumes",
    ],
  },
);

export type PodSpec = Infer<typeof podSpec>;
export type Container = Infer<typeof container>;
export type Probe = Infer<typeof probe>;
