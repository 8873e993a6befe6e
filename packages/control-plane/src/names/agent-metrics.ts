/** Where a pod's agent serves the metrics of the proxy, its own and the application's (Istio's port and path). */
export const agentMetrics = { port: 15_020, path: "/stats/prometheus" } as const;
