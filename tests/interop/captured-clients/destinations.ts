// Whom the programs call: one workload of the mesh by two Services, and a machine outside of it.

export interface Destination {
  readonly host: string;
  /** What its host is. */
  readonly address: string;
  /** What HTTP servers there answer to a call from the captured workload. */
  readonly answer: string;
}

export const client = { four: "10.88.0.1", six: "fd88::1" } as const;
export const server = { four: "10.88.0.2", six: "fd88::2" } as const;
const byClient = "by spiffe://cluster.local/ns/shop/sa/client";

export const services = {
  four: { host: "four", address: "10.96.0.4", answer: `at ${server.four}:8080 ${byClient}` },
  six: { host: "six", address: "fd96::6", answer: `at ${server.six}:8080 ${byClient}` },
} as const satisfies Record<string, Destination>;

export const outside = {
  four: { host: "four.outside.example", address: "10.88.9.9", answer: "at 10.88.9.9:80 by nobody" },
  six: { host: "six.outside.example", address: "fd88::909", answer: "at fd88::909:80 by nobody" },
} as const satisfies Record<string, Destination>;

export const destinations: readonly Destination[] = [services.four, services.six, outside.four, outside.six];
