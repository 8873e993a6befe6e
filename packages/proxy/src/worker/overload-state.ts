// What overload asks of the data path right now. Plain fields that a request reads; the overload manager writes them.

export class OverloadState {
  /** Share of requests that are answered 503 at once, from 0 to 1 (Envoy: stop_accepting_requests). */
  refusedRequests = 0;
  /** Share of answers that end their connection (disable_http_keepalive). */
  closedConnections = 0;
  /** Share of new connections that are closed at once (reject_incoming_connections). */
  refusedConnections = 0;
  /**
   * False: every new connection is closed at once. Envoy's stop_accepting_connections leaves them to the kernel's
   * queue.
   */
  acceptsConnections = true;
  /** Connections of all listeners together; one more is closed at once (global_downstream_max_connections). */
  maxConnections = Infinity;

  /** Whether a new connection has to go. `random` is in [0, 1). */
  refusesConnection(random: () => number): boolean {
    if (!this.acceptsConnections) return true;
    return this.refusedConnections > 0 && random() < this.refusedConnections;
  }

  /** Whether a request is to be answered at once. */
  refusesRequest(random: () => number): boolean {
    return this.refusedRequests > 0 && random() < this.refusedRequests;
  }

  /** Whether an answer is to end its connection. */
  endsConnection(random: () => number): boolean {
    return this.closedConnections > 0 && random() < this.closedConnections;
  }
}
