// Pods of the mesh for tests beside a cluster: made by the injector, as its webhook makes them, of the shop's images,
// which have Node and no shell. Their programs are written in the test.
import assert from "node:assert/strict";
import { injectPod, type InjectionValues } from "@tulle/kubernetes";
import { kubectl } from "./kubectl.ts";

/** Of Node alone, as a user of its own. */
const image = "tulle/shop-catalog:0.1.0";
const node = "/usr/local/bin/node";

export interface TestPod {
  /** On any when missing. */
  readonly node?: string;
  /** JavaScript. */
  readonly program: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** More of the container, and of the pod. */
  readonly container?: object;
  readonly spec?: object;
}

export class Mesh {
  readonly #namespace: string;
  readonly #values: InjectionValues;

  constructor(namespace: string, values: InjectionValues) {
    this.#namespace = namespace;
    this.#values = values;
  }

  /** A pod as it is after injection; one that is not to be injected as it is. */
  pod(name: string, settings: TestPod): object {
    const { metadata, spec } = this.template(name, settings);
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { ...metadata, name, namespace: this.#namespace },
      spec,
    };
  }

  /** What a pod or a Job is made of. */
  template(name: string, settings: TestPod): { readonly metadata: object; readonly spec: object } {
    const { labels = {}, annotations = {}, container = {}, program } = settings;
    const pod = {
      metadata: { labels: { app: name, ...labels }, annotations },
      spec: {
        containers: [
          { name: "main", image, command: [node, "-e", program], securityContext: restricted, ...container },
        ],
        terminationGracePeriodSeconds: 10,
        ...(settings.node === undefined ? {} : { nodeName: settings.node }),
        ...settings.spec,
      },
    };
    const result = injectPod({
      pod,
      namespace: { name: this.#namespace, labels: { "tulle-injection": "enabled" } },
      mesh: {},
      values: this.#values,
    });
    if (result.outcome === "refused") assert.fail(result.problems.join("\n"));
    const made = result.outcome === "injected" ? result.pod : pod;
    return { metadata: made.metadata ?? {}, spec: made.spec };
  }

  strictMutualTls(): object {
    return {
      apiVersion: "security.tulle.io/v1",
      kind: "PeerAuthentication",
      metadata: { name: "default", namespace: this.#namespace },
      spec: { mtls: { mode: "STRICT" } },
    };
  }

  service(name: string, port: number, targetPort: number): object {
    return {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name, namespace: this.#namespace },
      spec: {
        ipFamilyPolicy: "RequireDualStack",
        selector: { app: name },
        ports: [{ name: "http", port, targetPort }],
      },
    };
  }

  /** Runs JavaScript in the application's container, as a program that knows nothing of the mesh. */
  async run(pod: string, program: string, container = "main"): Promise<string> {
    return kubectl(["exec", "-n", this.#namespace, pod, "-c", container, "--", node, "-e", program]);
  }

  /** The body of an answer 2xx; rejects otherwise. */
  async fetchFrom(pod: string, url: string): Promise<string> {
    const program = `fetch(${JSON.stringify(url)}).then(async (answer) => {
      const text = await answer.text();
      process.stdout.write(text, () => process.exit(answer.ok ? 0 : 1));
    }, (error) => { console.error(error.cause?.message ?? error.message); process.exit(1); })`;
    return this.run(pod, program);
  }

  async ready(pod: string): Promise<void> {
    await kubectl(["wait", "-n", this.#namespace, `pod/${pod}`, "--for=condition=Ready", "--timeout=90s"]);
  }

  async fieldOf(object: string, path: string): Promise<string> {
    return kubectl(["get", "-n", this.#namespace, object, "-o", `jsonpath=${path}`]);
  }
}

/** What the Pod Security level `restricted` asks of a container. */
const restricted = {
  allowPrivilegeEscalation: false,
  runAsNonRoot: true,
  runAsUser: 10_001,
  capabilities: { drop: ["ALL"] },
  seccompProfile: { type: "RuntimeDefault" },
};
