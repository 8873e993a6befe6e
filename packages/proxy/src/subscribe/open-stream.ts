// How subscriptions open their streams: over the clusters of the proxy itself.
import type { OpenByteStream, XdsService } from "@tulle/xds";
import type { GrpcTarget } from "../http/grpc-target.ts";

export type OpenStream = (target: GrpcTarget, service: XdsService) => OpenByteStream;
