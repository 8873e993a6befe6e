// Every command of `tulle`, in the order of `tulle --help`. The table is all that the frame knows of a command before
// it is asked for.
import type { CommandRow } from "./command/command-module.ts";

const run = "Run a mesh on this machine";
const configure = "Configure it";
const look = "Look inside";
const machines = "A machine that is no pod";
const cluster = "Install it into a cluster";
const processes = "Its processes, one by one";
const other = "Other";

export const commands: readonly CommandRow[] = [
  { name: "up", group: run, summary: "run a folder of manifests", load: () => import("./commands/up/up.ts") },
  { name: "down", group: run, summary: "end a running instance", load: () => import("./commands/down.ts") },
  { name: "pods", group: run, summary: "list pods and their addresses", load: () => import("./commands/pods.ts") },
  { name: "logs", group: run, summary: "show what a pod's processes wrote", load: () => import("./commands/logs.ts") },
  {
    name: "exec",
    group: run,
    summary: "run a command as a pod's container does",
    load: () => import("./commands/exec/exec.ts"),
  },
  { name: "apply", group: configure, summary: "add or change resources", load: () => import("./commands/apply.ts") },
  { name: "delete", group: configure, summary: "remove resources", load: () => import("./commands/delete.ts") },
  {
    name: "rollout",
    group: configure,
    summary: "lead requests to a new version; replace a Deployment's pods",
    load: () => import("./commands/rollout/rollout.ts"),
  },
  { name: "get", group: configure, summary: "show resources", load: () => import("./commands/get.ts") },
  {
    name: "vm",
    group: configure,
    summary: "let machines that are no pods join, and see which have",
    load: () => import("./commands/vm/vm.ts"),
  },
  {
    name: "analyze",
    group: configure,
    summary: "check manifests without running them",
    load: () => import("./commands/analyze.ts"),
  },
  {
    name: "proxy-status",
    aliases: ["ps"],
    group: look,
    summary: "whether each proxy has the newest configuration",
    load: () => import("./commands/proxy-status.ts"),
  },
  {
    name: "changes",
    group: look,
    summary: "what was changed in the configuration, and when",
    load: () => import("./commands/changes.ts"),
  },
  {
    name: "proxy-config",
    aliases: ["pc"],
    group: look,
    summary: "read and change one proxy's settings",
    load: () => import("./commands/proxy-config/proxy-config.ts"),
  },
  {
    name: "authz",
    group: look,
    summary: "the AuthorizationPolicies that a proxy enforces",
    load: () => import("./commands/authz/authz.ts"),
  },
  {
    name: "x",
    aliases: ["experimental"],
    group: look,
    summary: "describe pods and Services, wait for proxies, configure Prometheus",
    load: () => import("./commands/x/x.ts"),
  },
  {
    name: "ca",
    group: look,
    summary: "the mesh's certificate authority and its roots",
    load: () => import("./commands/ca/ca.ts"),
  },
  {
    name: "auth",
    group: look,
    summary: "manage the authorization server's clients, users and grants",
    load: () => import("./commands/auth/auth.ts"),
  },
  {
    name: "install",
    group: cluster,
    summary: "install Tulle into a Kubernetes cluster",
    load: () => import("./commands/install.ts"),
  },
  {
    name: "upgrade",
    group: cluster,
    summary: "bring what is installed to this version, or to other values",
    load: () => import("./commands/upgrade.ts"),
  },
  {
    name: "uninstall",
    group: cluster,
    summary: "remove a revision, or everything",
    load: () => import("./commands/uninstall.ts"),
  },
  {
    name: "precheck",
    group: cluster,
    summary: "look at what would stand in an installation's way",
    load: () => import("./commands/precheck.ts"),
  },
  {
    name: "check",
    group: cluster,
    summary: "whether what is installed is healthy",
    load: () => import("./commands/check.ts"),
  },
  {
    name: "inject",
    group: cluster,
    summary: "put proxies into manifests",
    load: () => import("./commands/inject/inject.ts"),
  },
  {
    name: "manifest",
    group: cluster,
    summary: "print what is installed, for other tools",
    load: () => import("./commands/manifest/manifest.ts"),
  },
  {
    name: "tag",
    group: cluster,
    summary: "name revisions for namespaces",
    load: () => import("./commands/tag/tag.ts"),
  },
  {
    name: "join",
    group: machines,
    summary: "make this machine one of a mesh, by a token",
    load: () => import("./commands/join/join.ts"),
  },
  {
    name: "leave",
    group: machines,
    summary: "take this machine out of its mesh",
    load: () => import("./commands/leave.ts"),
  },
  {
    name: "control-plane",
    group: processes,
    summary: "turn configuration into xDS and serve it",
    load: () => import("./commands/control-plane/control-plane.ts"),
  },
  {
    name: "agent",
    group: processes,
    summary: "run beside a workload: bootstrap, xDS relay, proxy",
    load: () => import("./commands/agent.ts"),
  },
  {
    name: "proxy",
    group: processes,
    summary: "run a proxy on an Envoy bootstrap document",
    load: () => import("./commands/proxy.ts"),
  },
  {
    name: "capture",
    group: processes,
    summary: "lead a pod's connections through its proxy",
    load: () => import("./commands/capture/capture.ts"),
  },
  {
    name: "cni",
    group: processes,
    summary: "capture the pods of a Kubernetes node for the CNI plug-in",
    load: () => import("./commands/cni.ts"),
  },
  { name: "version", group: other, summary: "print the version", load: () => import("./commands/version.ts") },
];
