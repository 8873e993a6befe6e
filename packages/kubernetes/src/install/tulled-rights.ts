// What the control plane may do, and why: its ServiceAccount, and no right that it does not use (the audit log of a
// real API server is compared with this file by install.kubernetes.test.ts).
//
// Whoever holds its token, or may run pods with its account, reads every Secret of the cluster: keep others from
// making pods in its namespace. It changes nothing of a cluster's own but what is listed under "writes".
import {
  authoritySecret,
  injectorWebhook,
  leaderLease,
  reportsConfigMap,
  rootsConfigMap,
  stateSecret,
  validatorWebhook,
  webhooksLease,
} from "../names.ts";
import { ownKinds } from "./base.ts";
import { isSet, type Manifest, releaseNamespace, type Template, when } from "./template.ts";
import { ofRevision, tulledLabels, tulledName } from "./tulled-names.ts";

const follow = ["list", "watch"] as const;
const authorization = "rbac.authorization.k8s.io";

export function tulledRights(): readonly Manifest[] {
  const account = { kind: "ServiceAccount", name: tulledName, namespace: releaseNamespace };
  const metadata = { name: tulledName, labels: tulledLabels };
  const within = { ...metadata, namespace: releaseNamespace };
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: within },
    { apiVersion: `${authorization}/v1`, kind: "ClusterRole", metadata, rules: clusterRules() },
    {
      apiVersion: `${authorization}/v1`,
      kind: "ClusterRoleBinding",
      metadata,
      roleRef: { apiGroup: authorization, kind: "ClusterRole", name: tulledName },
      subjects: [account],
    },
    { apiVersion: `${authorization}/v1`, kind: "Role", metadata: within, rules: ownNamespaceRules() },
    {
      apiVersion: `${authorization}/v1`,
      kind: "RoleBinding",
      metadata: within,
      roleRef: { apiGroup: authorization, kind: "Role", name: tulledName },
      subjects: [account],
    },
  ];
}

function clusterRules(): readonly Template[] {
  const tulle = [...ownKinds("tulle.io")];
  return [
    // Reads. What there is to route to, and whose it is.
    {
      apiGroups: [""],
      resources: ["services", "pods", "namespaces", "serviceaccounts"],
      verbs: follow,
    },
    // In which zone and region pods run.
    { apiGroups: [""], resources: ["nodes"], verbs: follow },
    { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: follow },
    // Roll-outs, and which pods belong together.
    { apiGroups: ["apps"], resources: ["deployments"], verbs: follow },
    // The mesh's configuration. Of the root namespaces' alone; a Role could not name one that is not there yet.
    { apiGroups: [""], resources: ["configmaps"], verbs: follow },
    ...tulle.map(([group, resources]) => ({ apiGroups: [group], resources, verbs: follow })),
    ...[...ownKinds("istio.io")].map(([group, resources]) =>
      when(isSet("tulled.watchIstioResources"), { apiGroups: [group], resources, verbs: follow }),
    ),
    // Certificates that Gateways name. All are watched by name and version, without what is in them, and those that
    // are named are fetched; Kubernetes has no smaller right for this than to read all.
    { apiGroups: [""], resources: ["secrets"], verbs: ["get", ...follow] },
    // Whose a workload's token is.
    { apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: ["create"] },
    // Writes. What became of a resource: its status, and nothing else of it.
    ...tulle.map(([group, resources]) => ({
      apiGroups: [group],
      resources: resources.map((each) => `${each}/status`),
      verbs: ["patch"],
    })),
    // That one of Istio's group is shadowed by one of Tulle's.
    ...[...ownKinds("istio.io")].map(([group, resources]) =>
      when(isSet("tulled.watchIstioResources"), {
        apiGroups: [group],
        resources: resources.map((each) => `${each}/status`),
        verbs: ["patch"],
      }),
    ),
    // Entries of machines that have joined, as Services lead to them.
    when(isSet("tulled.machines.enabled"), {
      apiGroups: ["networking.tulle.io"],
      resources: ["workloadentries"],
      verbs: ["create", "patch", "delete"],
    }),
    // Roots of the mesh, in every namespace under one name.
    {
      apiGroups: [""],
      resources: ["configmaps"],
      resourceNames: [rootsConfigMap.name],
      verbs: ["create", "patch"],
    },
    // Its own webhooks' certificates, and no other webhook's: whoever may change those sees every pod of the cluster.
    {
      apiGroups: ["admissionregistration.k8s.io"],
      resources: ["mutatingwebhookconfigurations"],
      resourceNames: [ofRevision(injectorWebhook("default"))],
      verbs: ["patch"],
    },
    // Which tags lead to its revision; `tulle tag set` gives the right to write their certificates.
    { apiGroups: ["admissionregistration.k8s.io"], resources: ["mutatingwebhookconfigurations"], verbs: follow },
    {
      apiGroups: ["admissionregistration.k8s.io"],
      resources: ["validatingwebhookconfigurations"],
      resourceNames: [ofRevision(validatorWebhook("default"))],
      verbs: [...follow, "patch"],
    },
  ];
}

function ownNamespaceRules(): readonly Template[] {
  return [
    // Its own state, by name. What is made is not made by name, so that no name can be asked for there.
    {
      apiGroups: [""],
      resources: ["secrets"],
      resourceNames: [authoritySecret, stateSecret],
      verbs: ["update", "patch"],
    },
    // What each replica's proxies have, for the one that writes statuses.
    { apiGroups: [""], resources: ["configmaps"], resourceNames: [reportsConfigMap], verbs: ["create", "patch"] },
    { apiGroups: [""], resources: ["secrets"], verbs: ["create"] },
    {
      apiGroups: ["coordination.k8s.io"],
      resources: ["leases"],
      resourceNames: [leaderLease, ofRevision(webhooksLease("default"))],
      verbs: ["get", "update"],
    },
    { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"] },
  ];
}
