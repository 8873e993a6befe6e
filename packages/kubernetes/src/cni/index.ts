// The CNI plug-in's other half (`@tulle/kubernetes/cni`): an entry of its own, since one program alone needs it.
export { startCaptureServer, socketName } from "./capture-server.ts";
export { PluginFiles } from "./plugin-files.ts";
export { startRepair } from "./repair-pods.ts";
