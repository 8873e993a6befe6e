// Reads the catalog by gRPC, through the sidecar where there is one. Answers look as the catalog's HTTP port gives
// them.
import { Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { catalogService } from "../catalog/protocol.ts";

export interface CatalogAnswer {
  readonly status: number;
  readonly body: unknown;
}

export interface CatalogByGrpc {
  /** All items without `id`. @throws a ServiceError where the catalog does not answer */
  read(id: string | undefined, headers: Readonly<Record<string, string>>, timeoutMs: number): Promise<CatalogAnswer>;
  close(): void;
}

/** What a refusal is by HTTP; whatever is not here was no answer of the catalog. */
const httpStatuses: Readonly<Partial<Record<status, number>>> = {
  [status.NOT_FOUND]: 404,
  [status.INTERNAL]: 500,
  [status.UNAVAILABLE]: 503,
  [status.PERMISSION_DENIED]: 403,
  [status.UNAUTHENTICATED]: 401,
};

/**
 * `address` is the catalog's, such as `catalog:9090`; `proxy` is what HTTP_PROXY says. A tunnel, which gRPC would ask
 * the proxy for, leads past the rules for requests: the proxy is called as if it were the catalog.
 */
export function catalogByGrpc(address: string, proxy: string | undefined): CatalogByGrpc {
  const client = new Client(proxy === undefined ? address : new URL(proxy).host, credentials.createInsecure(), {
    "grpc.default_authority": address,
    "grpc.enable_http_proxy": 0,
  });
  const call = (name: string, request: object, metadata: Metadata, timeoutMs: number): Promise<unknown> => {
    const { path, requestSerialize, responseDeserialize } = catalogService[name]!;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const options = { deadline: Date.now() + timeoutMs };
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, metadata, options, (error, answer) =>
      error === null ? resolve(answer) : reject(error),
    );
    return promise;
  };
  return {
    close: () => client.close(),
    async read(id, headers, timeoutMs) {
      const metadata = metadataOf(headers);
      try {
        if (id !== undefined) {
          const body = await call("GetItem", { id: /^\d{1,9}$/.test(id) ? Number(id) : 0 }, metadata, timeoutMs);
          return { status: 200, body };
        }
        const { items = [] } = (await call("ListItems", {}, metadata, timeoutMs)) as {
          readonly items?: readonly object[];
        };
        return { status: 200, body: items };
      } catch (error) {
        const { code, details } = error as ServiceError;
        const httpStatus = httpStatuses[code];
        if (httpStatus === undefined) throw error;
        return { status: httpStatus, body: { error: details } };
      }
    },
  };
}

function metadataOf(headers: Readonly<Record<string, string>>): Metadata {
  // A sidecar that is started again is waited for, as long as the call may take.
  const metadata = new Metadata({ waitForReady: true });
  for (const [name, value] of Object.entries(headers)) {
    metadata.set(name, name.endsWith("-bin") ? Buffer.from(value, "base64") : value);
  }
  return metadata;
}
