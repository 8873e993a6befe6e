// What a client dials where connections are redirected to a proxy, and which filter chain takes it with which
// addresses: the restored one, and the socket's own.
export type RedirectedAnswers = Readonly<Record<string, string>>;

export interface RedirectedDial {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly expected: string;
}

const own = (port: number, ip = "127.0.0.1"): string => `${ip}:${port}`;

export const redirectedDials: readonly RedirectedDial[] = [
  {
    name: "the listener of exactly that address",
    host: "10.96.0.1",
    port: 80,
    expected: `exact, 10.96.0.1:80 ${own(15_001)}`,
  },
  {
    name: "else the one of all addresses",
    host: "10.96.0.2",
    port: 80,
    expected: `any, 10.96.0.2:80 ${own(15_001)}`,
  },
  { name: "else the default chain", host: "10.96.0.1", port: 81, expected: `outbound, 10.96.0.1:81 ${own(15_001)}` },
  {
    name: "a chain of the bound listener, by the restored address",
    host: "10.96.9.1",
    port: 81,
    expected: `range, 10.96.9.1:81 ${own(15_001)}`,
  },
  {
    name: "a client that dials the proxy's own port",
    host: "127.0.0.1",
    port: 15_001,
    expected: `own port, ${own(15_001)} ${own(15_001)}`,
  },
  {
    name: "a client that dials the own port of another address",
    host: "10.96.0.1",
    port: 15_001,
    expected: `own port, 10.96.0.1:15001 ${own(15_001)}`,
  },
  {
    name: "the listener's own filters look at what was redirected",
    host: "10.96.0.3",
    port: 83,
    expected: `inspected, 10.96.0.3:83 ${own(15_001)}`,
  },
  {
    name: "a listener that hands off itself keeps what it was handed",
    host: "10.96.0.1",
    port: 84,
    expected: `inbound of 84, 10.96.0.1:84 ${own(15_001)}`,
  },
  {
    name: "IPv6, an address that is written in another way",
    host: "fd96::1",
    port: 80,
    expected: `exact 6, [fd96::1]:80 ${own(15_001, "[::1]")}`,
  },
  {
    name: "IPv6, all addresses",
    host: "fd96::2",
    port: 80,
    expected: `any 6, [fd96::2]:80 ${own(15_001, "[::1]")}`,
  },
  {
    name: "IPv4 at a socket of both families",
    host: "10.98.0.1",
    port: 80,
    expected: `any, 10.98.0.1:80 ${own(15_002)}`,
  },
  {
    name: "IPv6 at a socket of both families",
    host: "fd98::1",
    port: 81,
    expected: `both families, [fd98::1]:81 ${own(15_002, "[::1]")}`,
  },
  {
    name: "the listener filter alone restores and hands nothing off",
    host: "10.97.0.1",
    port: 80,
    expected: `inbound 80, 10.97.0.1:80 ${own(15_006)}`,
  },
  {
    name: "another port of the same",
    host: "10.97.0.1",
    port: 81,
    expected: `inbound other, 10.97.0.1:81 ${own(15_006)}`,
  },
  {
    name: "a listener that nothing was redirected to",
    host: "127.0.0.1",
    port: 15_085,
    expected: `bound, ${own(15_085)} ${own(15_085)}`,
  },
];
