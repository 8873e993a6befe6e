// The gRPC services that the catalog serves, as their .proto files say.
import path from "node:path";
import type { ServiceDefinition } from "@grpc/grpc-js";
import { loadSync, type MessageTypeDefinition } from "@grpc/proto-loader";

const definitions = loadSync(["shop.proto", "grpc/health/v1/health.proto", "grpc/reflection/v1/reflection.proto"], {
  includeDirs: [path.join(import.meta.dirname, "proto")],
  enums: String,
});

export const catalogService = definitions["shop.Catalog"] as ServiceDefinition;
export const healthService = definitions["grpc.health.v1.Health"] as ServiceDefinition;
export const reflectionService = definitions["grpc.reflection.v1.ServerReflection"] as ServiceDefinition;

/** Of all files above, as a client without them reads them. */
export const fileDescriptors = (definitions["shop.Item"] as MessageTypeDefinition<object, object>).fileDescriptorProtos;
