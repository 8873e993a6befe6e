// What an API server asks a webhook and what it is told (admission.k8s.io/v1, AdmissionReview). Anybody who reaches the
// port can ask: what comes is checked as anything from outside is.
export interface AdmissionRequest {
  readonly uid: string;
  readonly operation: string;
  readonly namespace: string;
  readonly name: string;
  readonly object: Readonly<Record<string, unknown>>;
  /** Of an update. */
  readonly oldObject: Readonly<Record<string, unknown>> | undefined;
}

export interface AdmissionAnswer {
  /** Undefined: it is allowed. Said to whoever has asked the API server. */
  readonly refusal?: string;
  /** What the object is to become. */
  readonly patch?: readonly object[];
  /** Told by kubectl, a line each. */
  readonly warnings?: readonly string[];
}

export type ReadReview =
  | { readonly ok: true; readonly request: AdmissionRequest }
  | { readonly ok: false; readonly problem: string };

const apiVersion = "admission.k8s.io/v1";

/** An API server cuts longer ones, and keeps 4,096 characters of all. */
const maxWarningCharacters = 256;
const maxWarnings = 15;
/** A label of DNS; empty for what lies in none. */
const namespaceName = /^[a-z0-9-]{0,63}$/;

export function readReview(text: string): ReadReview {
  let review: unknown;
  try {
    review = JSON.parse(text);
  } catch {
    return wrong("the body is no JSON");
  }
  if (!isObject(review)) return wrong("the body is no object");
  if (review["apiVersion"] !== apiVersion || review["kind"] !== "AdmissionReview") {
    return wrong(`the body is no AdmissionReview of ${apiVersion}`);
  }
  const { request } = review;
  if (!isObject(request)) return wrong("request is missing");
  const { uid, operation, namespace = "", name = "", object, oldObject } = request;
  if (typeof uid !== "string" || uid === "" || uid.length > 256) return wrong("request.uid is no id");
  if (typeof operation !== "string") return wrong("request.operation is no text");
  if (typeof namespace !== "string" || typeof name !== "string") return wrong("request.namespace or name is no text");
  // It goes into questions to the API server.
  if (!namespaceName.test(namespace)) return wrong("request.namespace is no name");
  if (!isObject(object)) return wrong("request.object is no object");
  const before = isObject(oldObject) ? oldObject : undefined;
  return { ok: true, request: { uid, operation, namespace, name, object, oldObject: before } };
}

export function answerText({ uid }: AdmissionRequest, { refusal, patch = [], warnings = [] }: AdmissionAnswer): string {
  const told = warnings.slice(0, maxWarnings).map((each) => shortened(each.replaceAll(/\s+/g, " ")));
  const response = {
    uid,
    allowed: refusal === undefined,
    ...(refusal === undefined ? {} : { status: { code: 400, reason: "BadRequest", message: refusal } }),
    ...(patch.length === 0
      ? {}
      : { patchType: "JSONPatch", patch: Buffer.from(JSON.stringify(patch)).toString("base64") }),
    ...(told.length === 0 ? {} : { warnings: told }),
  };
  return JSON.stringify({ apiVersion, kind: "AdmissionReview", response });
}

function shortened(text: string): string {
  return text.length <= maxWarningCharacters ? text : `${text.slice(0, maxWarningCharacters - 1)}…`;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const wrong = (problem: string): ReadReview => ({ ok: false, problem });
