// What a form gets that did not come from our pages.
import { isDocumentRequest, isOwnForm } from "../http/fetch-metadata.ts";
import type { Answer, EndpointRequest } from "../http/messages.ts";
import { isForm } from "../http/messages.ts";
import { messagePage } from "../pages/message-page.ts";
import { speechFor } from "../pages/speech.ts";
import { refuse } from "../protocol/refusal.ts";
import type { ServerContext } from "../server-context.ts";

/** A page that says that the form was not ours, or undefined when it was. */
export function forgedFormAnswer(server: ServerContext, request: EndpointRequest): Answer | undefined {
  const origin = new URL(server.config.issuer).origin;
  if (isDocumentRequest(request.headers) && isOwnForm(request.headers, origin) && isForm(request)) return undefined;
  const refusal = refuse("invalid_request", "a form that did not come from our pages", request.headers.origin);
  const errorId = server.audit.refusal("form refused", refusal, { address: request.address });
  return forgedPage(server, request, errorId);
}

export function forgedPage(server: ServerContext, request: EndpointRequest, errorId?: string): Answer {
  const speech = speechFor(server, request);
  const { forgedTitle: title, forged: text } = speech.texts.error;
  const id = errorId === undefined ? {} : { errorId };
  return messagePage(server, speech, { status: 403, title, text, way: "account", ...id });
}
