// The entry of the package: resource types, and the ADS server and client. Importing it loads neither gRPC nor any
// message schema but those of the discovery protocol; `./json`, `./resource-schemas` and `./*_pb` load more when asked.
export * from "./ads-client-api.ts";
export { connectAds, defaultBackOff } from "./ads-client.ts";
export * from "./ads-server-api.ts";
export { defaultAdsServerLimits, serveAds } from "./ads-server.ts";
export * from "./byte-stream-server.ts";
export * from "./byte-stream.ts";
export { callUnary, type UnaryRequest } from "./call-unary.ts";
export * from "./certificate-service.ts";
export * from "./encoded-resource.ts";
export { handlersOver } from "./handlers-over.ts";
export * from "./machine-service.ts";
export * from "./methods.ts";
export { defaultRateLimit } from "./request-pace.ts";
export { nameOfAny, resourceName, responseTypeUrl } from "./resource-name.ts";
export * from "./resource-types.ts";
export { isCutShort, rejectedNames, rejectionMessage } from "./rejected-names.ts";
export { splitList } from "./split-list.ts";
export * from "./transport-security.ts";
export * from "./unary-calls.ts";
export * from "./sotw/wire.ts";
