// Connections and requests out of a network that is not the test's own.
import http, { type IncomingHttpHeaders, type RequestOptions } from "node:http";
import { connect, isIPv6, type LookupFunction, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import type { NetworkNamespace } from "./network-namespace.ts";

/** Opened in the network before this returns. */
export function connectWithin(network: NetworkNamespace, ip: string, port: number): Socket {
  // It is opened at once where looking up is no wait, and a name is looked up, unlike an address.
  const lookup: LookupFunction = (_host, _options, done) => done(null, ip, isIPv6(ip) ? 6 : 4);
  return network.within(() => connect({ host: `at ${ip}`, port, lookup, autoSelectFamily: false }));
}

export interface CallWithin extends Pick<RequestOptions, "method" | "headers" | "path"> {
  readonly ip: string;
  readonly port: number;
}

export interface AnswerWithin {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** @throws where there is no answer */
export async function callWithin(
  network: NetworkNamespace,
  { ip, port, ...request }: CallWithin,
): Promise<AnswerWithin> {
  const { promise, resolve, reject } = Promise.withResolvers<AnswerWithin>();
  http
    .request({ host: ip, ...request, createConnection: () => connectWithin(network, ip, port) })
    .on("error", reject)
    .on("response", (response) => {
      const { statusCode = 0, headers } = response;
      text(response).then((body) => resolve({ status: statusCode, headers, body }), reject);
    })
    .end();
  return promise;
}
