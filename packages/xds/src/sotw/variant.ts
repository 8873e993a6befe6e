// State of the world as one variant of xDS, for the two shells: the messages on the wire and the machine behind them.
// Nothing else of this folder is known outside but the messages, which the relay reads.
import type { ClientVariant, ReceivedContent } from "../client-machine.ts";
import { shortened } from "../rejected-names.ts";
import { nameOfAny } from "../resource-name.ts";
import type { ServerVariant } from "../server-machine.ts";
import { SotwClientStream, type SotwReceivedResponse, type SotwRequest } from "./client-stream.ts";
import { SotwServerStream, type SotwServerRequest, type SotwServerResponse } from "./server-stream.ts";
import { decodeRequest, decodeResponseParts, encodeRequest, encodeResponse } from "./wire.ts";

export const sotwServer: ServerVariant<SotwServerRequest, SotwServerResponse> = {
  decodeRequest: (bytes) => {
    const { node, typeUrl, resourceNames: names, responseNonce: nonce, errorDetail } = decodeRequest(bytes);
    return { node, typeUrl, names, nonce, error: errorDetail && shortened(errorDetail.message) };
  },
  encodeResponse: ({ type: { typeUrl }, versionInfo, nonce, resources }, controlPlaneId) =>
    encodeResponse({ typeUrl, versionInfo, nonce, resources: resources.map(({ any }) => any), controlPlaneId }),
  newMachine: (options) => new SotwServerStream(options),
};

export const sotwClient: ClientVariant<SotwRequest, SotwReceivedResponse<ReceivedContent>> = {
  encodeRequest,
  // A request says everything about its type. The refusal of the response that is answered still holds when the names
  // have changed meanwhile.
  mergeRequests: (earlier, later) => {
    const error = later.error ?? (earlier.nonce === later.nonce ? earlier.error : undefined);
    return { ...later, error, first: earlier.first || later.first };
  },
  decodeResponse: (bytes) => {
    const { response, heartbeats, timesToLiveMs } = decodeResponseParts(bytes);
    const { typeUrl, versionInfo, nonce, resources, controlPlane } = response;
    const names = [...resources.map(nameOfAny), ...heartbeats];
    const isHeartbeat = resources.length === 0 && heartbeats.length > 0;
    const content = { resources, timesToLiveMs, controlPlaneId: controlPlane?.identifier ?? "" };
    return { typeUrl, versionInfo, nonce, names, isHeartbeat, content };
  },
  newMachine: (options) => new SotwClientStream(options),
};
