/**
 * Label selectors, as Kubernetes means them: the one place that compares labels with what is asked of them. Analysis,
 * the control plane, the local platform and the command line ask here alike.
 */

export type Labels = Readonly<Record<string, string>>;

/** Whether all labels of `selector` are among `labels`; an empty selector selects everything. */
export function selects(selector: Labels, labels: Labels): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value);
}

interface Selecting {
  readonly metadata: { readonly namespace: string };
  readonly spec: { readonly selector?: Labels };
}

interface Labelled {
  readonly namespace: string;
  readonly labels: Labels;
}

/**
 * Whether the workload is one of those behind the Service. A Service that selects by no label has none: somebody else
 * writes its endpoints.
 */
export function isBehind({ metadata, spec: { selector = {} } }: Selecting, { namespace, labels }: Labelled): boolean {
  return metadata.namespace === namespace && Object.keys(selector).length > 0 && selects(selector, labels);
}
