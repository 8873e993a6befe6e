// Which of a Service's pods a node's rules lead to (kube-proxy: CategorizeEndpoints).

export interface ServiceEndpoint {
  readonly address: string;
  readonly port: number;
  readonly nodeName?: string;
  readonly isReady: boolean;
  readonly isServing: boolean;
  readonly isTerminating: boolean;
}

export interface ChosenEndpoints {
  readonly cluster: readonly ServiceEndpoint[];
  /** On the node itself. */
  readonly local: readonly ServiceEndpoint[];
}

/**
 * Those that are ready; where none is, those that still answer while they end, for the whole cluster and for the node
 * each on its own. A roll-out that ends a node's last pod loses no connection so.
 */
export function chooseEndpoints(endpoints: readonly ServiceEndpoint[], nodeName: string): ChosenEndpoints {
  return {
    cluster: readyOrEnding(endpoints),
    local: readyOrEnding(endpoints.filter((endpoint) => endpoint.nodeName === nodeName)),
  };
}

function readyOrEnding(endpoints: readonly ServiceEndpoint[]): readonly ServiceEndpoint[] {
  const ready = endpoints.filter(({ isReady }) => isReady);
  return ready.length > 0 ? ready : endpoints.filter(({ isServing, isTerminating }) => isServing && isTerminating);
}
