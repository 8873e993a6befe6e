// The catalog by gRPC, with the services for health and reflection that clients of gRPC expect. The fault switch acts
// as it does by HTTP, with the status INTERNAL for 500.
import {
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  status,
} from "@grpc/grpc-js";
import type { Item } from "./items.ts";
import { catalogService, fileDescriptors, healthService, reflectionService } from "./protocol.ts";
import type { Stock } from "./stock.ts";

const services: Readonly<Record<string, ServiceDefinition>> = {
  "shop.Catalog": catalogService,
  "grpc.health.v1.Health": healthService,
  "grpc.reflection.v1.ServerReflection": reflectionService,
};

interface Refusal {
  readonly code: status;
  readonly details: string;
}

const blowup: Refusal = { code: status.INTERNAL, details: "blowup" };
const leaving: Refusal = { code: status.UNAVAILABLE, details: "this catalog ends; ask again" };

type OpenStream = ServerWritableStream<unknown, unknown> | ServerDuplexStream<unknown, unknown>;
type Keep = (stream: OpenStream) => void;

export interface GrpcServer {
  readonly port: number;
  /** Ends streams, whose callers ask another one, and lets other calls finish. */
  end(): void;
}

/** Listens at `address`, such as `0.0.0.0:9090`. */
export async function serveGrpc(stock: Stock, address: string): Promise<GrpcServer> {
  const server = new Server();
  const streams = new Set<OpenStream>();
  const keep: Keep = (stream) => {
    streams.add(stream);
    for (const end of ["cancelled", "finish"]) stream.once(end, () => streams.delete(stream));
  };
  server.addService(catalogService, catalogMethods(stock, keep));
  server.addService(healthService, healthMethods(keep));
  server.addService(reflectionService, { ServerReflectionInfo: reflect });
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const credentials = ServerCredentials.createInsecure();
  server.bindAsync(address, credentials, (error, port) => (error === null ? resolve(port) : reject(error)));
  return {
    port: await promise,
    end: () => {
      for (const stream of streams) stream.emit("error", leaving);
      server.tryShutdown(() => undefined);
    },
  };
}

function catalogMethods(stock: Stock, keep: Keep) {
  const find = ({ id }: { readonly id?: number }): Item | Refusal => {
    if (stock.fails()) return blowup;
    return stock.item(String(id)) ?? { code: status.NOT_FOUND, details: `no item has the id ${id ?? 0}` };
  };
  return {
    ListItems: (_call: unknown, answer: sendUnaryData<{ items: readonly Item[] }>) => {
      if (stock.fails()) answer(blowup);
      else answer(null, { items: stock.items });
    },
    GetItem: ({ request }: ServerUnaryCall<{ id?: number }, Item>, answer: sendUnaryData<Item>) => {
      const found = find(request);
      if ("code" in found) answer(found);
      else answer(null, found);
    },
    GetItems: (call: ServerDuplexStream<{ id?: number }, Item>) => {
      keep(call);
      const answer = (request: { id?: number }): void => {
        const found = find(request);
        if ("code" in found) call.off("data", answer).emit("error", found);
        // Who does not read is not answered until it does.
        else if (!call.write(found)) call.pause().once("drain", () => call.resume());
      };
      call.on("data", answer);
      call.once("end", () => call.end());
    },
  };
}

function healthMethods(keep: Keep) {
  const isKnown = (service = ""): boolean => service === "" || service in services;
  return {
    Check: ({ request }: ServerUnaryCall<{ service?: string }, object>, answer: sendUnaryData<object>) => {
      if (isKnown(request.service)) answer(null, { status: "SERVING" });
      else answer({ code: status.NOT_FOUND, details: `no such service: ${request.service}` });
    },
    // The state never changes while the process lives.
    Watch: (call: ServerWritableStream<{ service?: string }, object>) => {
      keep(call);
      call.write({ status: isKnown(call.request.service) ? "SERVING" : "SERVICE_UNKNOWN" });
    },
  };
}

interface ReflectionRequest {
  readonly host?: string;
  readonly fileByFilename?: string;
  readonly fileContainingSymbol?: string;
  readonly listServices?: string;
}

/** Every question about a file is answered with all files: there are three, and a client keeps what it needs. */
function reflect(call: ServerDuplexStream<ReflectionRequest, object>): void {
  call.on("data", (request: ReflectionRequest) => {
    call.write({ validHost: request.host, originalRequest: request, ...reflectionOf(request) });
  });
  call.once("end", () => call.end());
}

function reflectionOf(request: ReflectionRequest): object {
  if (request.listServices !== undefined) {
    return { listServicesResponse: { service: Object.keys(services).map((name) => ({ name })) } };
  }
  if (request.fileByFilename !== undefined || request.fileContainingSymbol !== undefined) {
    return { fileDescriptorResponse: { fileDescriptorProto: fileDescriptors } };
  }
  return { errorResponse: { errorCode: status.UNIMPLEMENTED, errorMessage: "there are no extensions" } };
}
