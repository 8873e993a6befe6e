// What an API server refuses, as its `Status` says it (meta/v1), and what kept a request from being answered at all.

/** The body of a refusal. */
export interface StatusBody {
  readonly kind?: string;
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
  readonly details?: { readonly retryAfterSeconds?: number };
}

export class KubernetesError extends Error {
  override readonly name = "KubernetesError";
  /** Of HTTP; 0 where there was no answer. */
  readonly code: number;
  /** Kubernetes' word for it, such as `NotFound`, `Conflict`, `Expired`; empty where it gave none. */
  readonly reason: string;
  /** How long the server asks to be left alone. */
  readonly retryAfterMs: number | undefined;

  constructor(code: number, reason: string, message: string, retryAfterMs?: number) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }

  /** The version that was asked for is no longer kept: whoever follows lists again. */
  get isExpired(): boolean {
    return this.code === 410 || this.reason === "Expired" || this.reason === "Gone";
  }
}

/** Undefined where the API server says that there is none. */
export async function unlessMissing<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof KubernetesError && error.code === 404) return undefined;
    throw error;
  }
}

/** Of an answer above 299; `retryAfter` is its header. */
export function errorOfAnswer(code: number, body: string, retryAfter: string | undefined): KubernetesError {
  let status: StatusBody = {};
  try {
    const parsed: unknown = JSON.parse(body);
    if (typeof parsed === "object" && parsed !== null) status = parsed;
  } catch {
    // A gateway in between speaks in its own words.
  }
  const seconds = status.details?.retryAfterSeconds ?? Number(retryAfter ?? Number.NaN);
  const message = typeof status.message === "string" ? status.message : `HTTP ${code}: ${body.trim().slice(0, 200)}`;
  return new KubernetesError(code, status.reason ?? "", message, Number.isFinite(seconds) ? seconds * 1000 : undefined);
}
