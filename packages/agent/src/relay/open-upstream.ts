// Opens the relay's stream to the control plane: at once in a mesh without an authority, else as soon as the workload
// has a certificate to show, and with the newest one.
import type { WorkloadCertificate } from "@tulle/identity";
import {
  type ByteStream,
  type ByteStreamEvents,
  type ByteStreamLimits,
  type CallOnStream,
  defaultByteStreamLimits,
  openByteStream,
  type UnaryAnswer,
  type XdsVariant,
} from "@tulle/xds";
import { clientTls } from "../identity/client-tls.ts";

/** What the relay needs of a workload's identity. */
export interface RelayIdentity {
  readonly current: WorkloadCertificate | undefined;
  follow(listener: (certificate: WorkloadCertificate) => void): () => void;
}

/**
 * Who hands out certificates is Tulle or Istio, and both take pings so often (Istio's agent sends them so): where the
 * machine of a control plane is gone, its proxies ask another one within 40 s, and do not keep endpoints that are gone.
 */
const meshLimits: ByteStreamLimits = {
  ...defaultByteStreamLimits,
  keepAliveIntervalMs: 30_000,
  keepAliveTimeoutMs: 10_000,
};

/** As `openByteStream`; one that waits for a certificate opens when it comes. */
export function openUpstream(
  controlPlane: string,
  identity: RelayIdentity | undefined,
  variant: XdsVariant,
  events: ByteStreamEvents,
  limits = meshLimits,
): ByteStream {
  return identity === undefined
    ? openByteStream(controlPlane, events, { variant })
    : new CertifiedStream(identity, () =>
        openByteStream(controlPlane, events, { variant, limits, tls: () => clientTls(identity.current!) }),
      );
}

/**
 * `waiting` for the first certificate → `open`, the stream itself → `closed`. While it waits nothing is reported: the
 * session counts as connecting, and answers what it is asked from the saved state once its patience ends.
 */
class CertifiedStream implements ByteStream {
  readonly #stopFollowing: () => void;
  #stream: ByteStream | undefined;
  #isClosed = false;
  #isPaused = false;

  constructor(identity: RelayIdentity, open: () => ByteStream) {
    this.#stopFollowing = identity.follow(() => {
      if (this.#isClosed || this.#stream !== undefined) return;
      this.#stream = open();
      if (this.#isPaused) this.#stream.pause();
    });
  }

  write(bytes: Uint8Array): void {
    this.#stream?.write(bytes);
  }

  pause(): void {
    this.#isPaused = true;
    this.#stream?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#stream?.resume();
  }

  call(request: CallOnStream): Promise<UnaryAnswer> | undefined {
    return this.#stream?.call?.(request);
  }

  close(): void {
    this.#isClosed = true;
    this.#stopFollowing();
    this.#stream?.close();
  }
}
