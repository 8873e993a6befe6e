/** Whether hosts of a ServiceEntry that have no address get one, by which captured workloads find them. */

/** Istio's label: `false` leaves its entry without. */
const allocationLabel = "networking.istio.io/enable-autoallocate-ip";

interface Labelled {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
}

export function allocatesAddresses({ metadata }: Labelled): boolean {
  return metadata.labels?.[allocationLabel] !== "false";
}
