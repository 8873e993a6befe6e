// What unmodified programs of a captured workload call, and what comes of it.
export type CapturedOutcome = Readonly<Record<string, string>>;

export interface CapturedCall {
  readonly name: string;
  /** For a shell in the calling pod. */
  readonly command: string;
  readonly expected: string;
}

const curl = "curl -sS -g --max-time 10";
const byClient = "by spiffe://cluster.local/ns/shop/sa/client";
/** As the proxy's group, past the rules. */
const uncaptured = "setpriv --regid=1337 --clear-groups";

export const capturedCalls: readonly CapturedCall[] = [
  {
    name: "HTTP to a Service's address, over mutual TLS",
    command: `${curl} http://10.96.0.5/a`,
    expected: `/a at 10.88.0.2:8080 ${byClient}`,
  },
  {
    name: "the same over IPv6",
    command: `${curl} http://[fd96::5]/b`,
    expected: `/b at 10.88.0.2:8080 ${byClient}`,
  },
  {
    name: "HTTP to a port that says nothing of its protocol",
    command: `${curl} http://10.96.0.5:9000/c`,
    expected: `/c at 10.88.0.2:8080 ${byClient}`,
  },
  {
    name: "a server that speaks first",
    command: `${curl} telnet://10.96.0.5:25 </dev/null`,
    expected: "220 mail.test",
  },
  {
    name: "TLS of the application's own, by its server name",
    command: `${curl} -k --resolve secure.test:443:10.96.0.5 https://secure.test/d`,
    expected: "secure",
  },
  {
    name: "an address that is no Service's, at a port that is none's",
    command: `${curl} http://10.88.0.9:8081/e`,
    expected: "/e at 10.88.0.9:8081 by nobody",
  },
  {
    name: "the same over IPv6, from a pod to a pod",
    command: `${curl} http://[fd88::2]:8081/f`,
    expected: "/f at fd88::2:8081 by nobody",
  },
  {
    name: "a host of a ServiceEntry, by the address that it is given",
    command: `${curl} --resolve web.internal:8000:240.240.168.192 http://web.internal:8000/k`,
    expected: `/k at 10.88.0.2:8080 ${byClient}`,
  },
  {
    name: "connections to one, whose endpoints its sidecar looks up",
    command: `${curl} telnet://240.240.252.179:25 </dev/null`,
    expected: "220 mail.test",
  },
  { name: "the outbound port itself", command: `${curl} http://127.0.0.1:15001/ 2>&1`, expected: "failed" },
  { name: "the inbound port itself", command: `${curl} http://127.0.0.1:15006/ 2>&1`, expected: "failed" },
  {
    name: "plain text past the caller's sidecar, where it is permitted",
    command: `${uncaptured} ${curl} http://10.88.0.2:8080/g`,
    expected: "/g at 10.88.0.2:8080 by nobody",
  },
];

export const strictCalls: readonly CapturedCall[] = [
  {
    name: "HTTP under STRICT",
    command: `${curl} http://10.96.0.5/h`,
    expected: `/h at 10.88.0.2:8080 ${byClient}`,
  },
  {
    name: "plain text past the caller's sidecar under STRICT",
    command: `${uncaptured} ${curl} http://10.88.0.2:8080/i`,
    expected: "failed",
  },
  {
    name: "plain text to a port that no Service leads to under STRICT",
    command: `${uncaptured} ${curl} http://10.88.0.2:8081/j`,
    expected: "failed",
  },
];
