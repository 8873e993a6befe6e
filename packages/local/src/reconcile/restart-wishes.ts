// Which pods somebody wants replaced, and of which he wants the proxy started again. A wish is an annotation on a Pod:
// taken once, and shown there until it is granted.
import type { Pod } from "@tulle/config";
import { proxyRestartAnnotation, restartAnnotation } from "./pod-resource.ts";

export class RestartWishes {
  /** By pod, the time that the wish carries. */
  readonly #replace = new Map<string, string>();
  readonly #restartProxy = new Map<string, string>();
  /** A watch may show a wish for a while after it has been granted. */
  readonly #grantedProxy = new Map<string, string>();

  /** Keeps the wishes on the pod that have not been taken before. */
  take({ metadata }: Pick<Pod, "metadata">): void {
    const { name, annotations = {} } = metadata;
    const { [restartAnnotation]: podAt, [proxyRestartAnnotation]: proxyAt } = annotations;
    if (podAt !== undefined && !this.#replace.has(name)) this.#replace.set(name, podAt);
    const known = [this.#restartProxy.get(name), this.#grantedProxy.get(name)];
    if (proxyAt !== undefined && !known.includes(proxyAt)) this.#restartProxy.set(name, proxyAt);
  }

  wantsReplaced(podName: string): boolean {
    return this.#replace.has(podName);
  }

  wantsProxyRestarted(podName: string): boolean {
    return this.#restartProxy.has(podName);
  }

  /** The proxy is on its way down. */
  grantProxy(podName: string): void {
    const at = this.#restartProxy.get(podName);
    this.#restartProxy.delete(podName);
    if (at !== undefined) this.#grantedProxy.set(podName, at);
  }

  /** What is still wished for, as annotations. */
  annotationsOf(podName: string): Readonly<Record<string, string>> {
    const podAt = this.#replace.get(podName);
    const proxyAt = this.#restartProxy.get(podName);
    return {
      ...(podAt === undefined ? {} : { [restartAnnotation]: podAt }),
      ...(proxyAt === undefined ? {} : { [proxyRestartAnnotation]: proxyAt }),
    };
  }

  /** The pod is gone. */
  forget(podName: string): void {
    for (const wishes of [this.#replace, this.#restartProxy, this.#grantedProxy]) wishes.delete(podName);
  }
}
