// A webhook is called again when another one has changed the pod after it (reinvocationPolicy: IfNeeded). What is new
// then are containers; their probes have to lead to the agent like those of the others.
import { proxyNames } from "./injection-status.ts";
import { isPlainObject } from "./plain-object.ts";
import { allContainers, type Container, type Pod } from "./pod.ts";
import { appProbesVariable, rewriteHandlers } from "./probes.ts";

/** Undefined where there is nothing to do: the pod has no proxy of ours, or all its probes are rewritten. */
export function completeProbes(pod: Pod, injected: readonly string[]): Pod | undefined {
  const proxy = allContainers(pod).find(({ name }) => injected.includes(name) && proxyNames.includes(name));
  const isRewritten = proxy !== undefined && variable(proxy) !== undefined;
  if (!isRewritten) return undefined;
  const { pod: changed, probes } = rewriteHandlers(pod, proxy.name);
  if (Object.keys(probes).length === 0) return undefined;
  const known = parse(variable(proxy)!);
  const text = JSON.stringify({ ...known, ...probes });
  const complete = (container: Container): Container =>
    container.name === proxy.name ? withVariable(container, text) : container;
  const { spec } = changed;
  return {
    ...changed,
    spec: {
      ...spec,
      containers: spec.containers.map(complete),
      ...(spec.initContainers === undefined ? {} : { initContainers: spec.initContainers.map(complete) }),
    },
  };
}

interface Variable {
  readonly name: string;
  readonly value?: string;
}

function variables(container: Container): readonly Variable[] {
  const { env } = container;
  return Array.isArray(env) ? (env as readonly Variable[]) : [];
}

const variable = (container: Container): string | undefined =>
  variables(container).find(({ name }) => name === appProbesVariable)?.value;

function withVariable(container: Container, value: string): Container {
  const env = variables(container).map((each) => (each.name === appProbesVariable ? { ...each, value } : each));
  return { ...container, env };
}

function parse(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    return isPlainObject(value) ? value : {};
  } catch {
    return {};
  }
}
