// Who calls an application behind a sidecar in TPROXY mode, and whom the application sees.

export interface TproxyCall {
  readonly name: string;
  readonly from: "client" | "plain" | "server";
  /** For a shell. */
  readonly command: string;
  readonly expected: string;
}

const curl = "curl -sS -g --max-time 20";

export const tproxyCalls: readonly TproxyCall[] = [
  { name: "HTTP over mutual TLS", from: "client", command: `${curl} http://10.96.0.4/`, expected: "seen 10.88.0.1" },
  { name: "the same over IPv6", from: "client", command: `${curl} http://[fd96::6]/`, expected: "seen fd88::1" },
  {
    name: "a connection over mutual TLS",
    from: "client",
    command: `${curl} telnet://10.96.0.4:25 </dev/null`,
    expected: "220 seen 10.88.0.1",
  },
  {
    name: "a connection over IPv6",
    from: "client",
    command: `${curl} telnet://[fd96::6]:25 </dev/null`,
    expected: "220 seen fd88::1",
  },
  {
    name: "another client, whose requests go by a connection of its own",
    from: "plain",
    command: `${curl} http://10.88.0.2:8080/`,
    expected: "seen 10.88.0.3",
  },
  {
    name: "the same over IPv6 in the clear",
    from: "plain",
    command: `${curl} http://[fd88::2]:8080/`,
    expected: "seen fd88::3",
  },
  { name: "the first client again", from: "client", command: `${curl} http://10.96.0.4/`, expected: "seen 10.88.0.1" },
  {
    name: "a port of no Service",
    from: "plain",
    command: `${curl} http://10.88.0.2:8081/`,
    expected: "seen 10.88.0.3",
  },
  {
    name: "the workload itself",
    from: "server",
    command: `${curl} http://10.88.0.2:8080/`,
    expected: "seen 10.88.0.2",
  },
];
