// Where a platform asks whether a pod's proxy is ready; Istio's port and path.
export const healthPort = 15_021;
export const healthPath = "/healthz/ready";
