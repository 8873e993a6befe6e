// What a client dials where connections are redirected to a proxy, and which filter chain takes it with which
// addresses: the restored one, and the socket's own.
export interface RedirectedOutcome {
  /** By the dial's name. */
  readonly answers: Readonly<Record<string, string>>;
  readonly counters: Readonly<Record<string, number>>;
}

/** Where a server listens at every address of the machine. */
export const destinationPort = 9000;

export interface RedirectedDial {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** Of the request; `/`. */
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly expected: string;
  /** Envoy takes the connection's own address for its destination, and dials itself until it has no descriptor left. */
  readonly loopsAtEnvoy?: true;
}

const believed = "x-envoy-original-dst-host";

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
  {
    name: "TCP goes on to its destination",
    host: "10.99.1.1",
    port: destinationPort,
    expected: "reached 10.99.1.1 from 127.0.0.6",
  },
  {
    name: "TCP over IPv6 goes on from a source of its family",
    host: "fd99::1",
    port: destinationPort,
    expected: "reached fd99::1 from ::6",
  },
  {
    name: "TCP that was not redirected has no destination",
    host: "127.0.0.1",
    port: 15_003,
    expected: "closed",
    loopsAtEnvoy: true,
  },
  { name: "nobody listens at TCP's destination", host: "10.99.1.1", port: 9009, expected: "closed" },
  {
    name: "a request goes on to its connection's destination",
    host: "10.99.2.1",
    port: destinationPort,
    expected: "reached 10.99.2.1 from 127.0.0.6",
  },
  {
    name: "what a header says is nothing where it is not believed",
    host: "10.99.2.1",
    port: destinationPort,
    headers: { [believed]: `10.99.2.7:${destinationPort}` },
    expected: "reached 10.99.2.1 from 127.0.0.6",
  },
  {
    name: "a header that is believed",
    host: "10.99.2.1",
    port: destinationPort,
    path: "/header",
    headers: { [believed]: `10.99.2.7:${destinationPort}` },
    expected: "reached 10.99.2.7 from 127.0.0.6",
  },
  {
    name: "a header that is believed, where nothing was redirected",
    host: "127.0.0.1",
    port: 15_004,
    path: "/header",
    headers: { [believed]: `10.99.2.8:${destinationPort}` },
    expected: "reached 10.99.2.8 from 127.0.0.6",
  },
  {
    name: "a header that names no address",
    host: "10.99.2.1",
    port: destinationPort,
    path: "/header",
    headers: { [believed]: "elsewhere:80" },
    expected: "reached 10.99.2.1 from 127.0.0.6",
  },
  {
    name: "another port than the destination's",
    host: "10.99.2.1",
    port: 81,
    path: "/port",
    expected: "reached 10.99.2.1 from 127.0.0.6",
  },
  {
    name: "a request that was not redirected has no destination",
    host: "127.0.0.1",
    port: 15_004,
    expected: "no healthy upstream",
    loopsAtEnvoy: true,
  },
  {
    name: "the destination is the proxy itself",
    host: "127.0.0.9",
    port: 15_004,
    expected: "no healthy upstream",
    loopsAtEnvoy: true,
  },
];
