// Headers of the PROXY protocol, good and bad, at this proxy and at a stock Envoy: whose connection each of them takes
// it for, what it says to the bad ones, and what it counts.
import assert from "node:assert/strict";
import http from "node:http";
import net from "node:net";
import { after, before, test } from "node:test";
import { extension, fileAccessLog, loopback, router, staticCluster } from "../../../testing/envoy-json.ts";
import { countersOf, movedCounters, type Side, type Sides, startSides } from "../../../testing/parity-pair.ts";

const settings: Readonly<Record<string, object>> = {
  required: {},
  optional: { allow_requests_without_proxy_protocol: true },
  "no v1": { disallowed_versions: ["V1"], stat_prefix: "named" },
  "optional, no v2": { allow_requests_without_proxy_protocol: true, disallowed_versions: ["V2"] },
};

const addresses =
  "%DOWNSTREAM_REMOTE_ADDRESS% %DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT% %DOWNSTREAM_LOCAL_ADDRESS%";

function bootstrapFor(_backEndPort: number, log: string): string {
  const listener = (name: string): object => ({
    name,
    address: loopback(0),
    listener_filters: [
      {
        name: "proxy",
        typed_config: {
          "@type": extension("filters.listener.proxy_protocol.v3.ProxyProtocol"),
          ...settings[name],
        },
      },
      { name: "http", typed_config: { "@type": extension("filters.listener.http_inspector.v3.HttpInspector") } },
    ],
    filter_chains: [
      {
        filters: [
          {
            name: "envoy.filters.network.http_connection_manager",
            typed_config: {
              "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
              stat_prefix: name,
              use_remote_address: true,
              access_log: [fileAccessLog(log, "-\n")],
              route_config: {
                virtual_hosts: [
                  {
                    name: "all",
                    domains: ["*"],
                    routes: [
                      {
                        match: { prefix: "/" },
                        direct_response: { status: 200 },
                        response_headers_to_add: [
                          { header: { key: "addresses", value: addresses } },
                          { header: { key: "forwarded-for", value: "%REQ(X-FORWARDED-FOR)%" } },
                        ],
                      },
                    ],
                  },
                ],
              },
              http_filters: [router],
            },
          },
        ],
      },
    ],
  });
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      listeners: Object.keys(settings).map(listener),
      clusters: [staticCluster("unused", [1])],
    },
  });
}

let sides: Sides;
before(async () => {
  sides = await startSides(http.createServer(), Object.keys(settings).length, bootstrapFor);
});
after(() => sides.stop());

const request = Buffer.from("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

const signature = "0d0a0d0a000d0a515549540a";
/** Version 2: command and family, then what follows the length. */
const binary = (commandAndFamily: string, rest: string, lengthBytes = rest.length / 2): Buffer =>
  Buffer.from(signature + commandAndFamily + lengthBytes.toString(16).padStart(4, "0") + rest, "hex");
const ipv4 = "cb007107 c0000201 1234 0050".replaceAll(" ", "");
const ipv6 = `${"20010db8".padEnd(31, "0")}7${"20010db8".padEnd(31, "0")}812340050`;
const line = (text: string): Buffer => Buffer.from(text, "latin1");

const headers: Readonly<Record<string, Buffer>> = {
  none: Buffer.alloc(0),
  TCP4: line("PROXY TCP4 203.0.113.7 192.0.2.1 4660 80\r\n"),
  TCP6: line("PROXY TCP6 2001:db8::7 2001:db8::8 4660 80\r\n"),
  "TCP6 in its long form": line("PROXY TCP6 2001:0db8:0:0:0:0:0:7 2001:DB8::8 4660 80\r\n"),
  "TCP6 with IPv4 inside": line("PROXY TCP6 ::ffff:203.0.113.7 ::ffff:192.0.2.1 4660 80\r\n"),
  UNKNOWN: line("PROXY UNKNOWN\r\n"),
  "UNKNOWN with words": line("PROXY UNKNOWN ffff:f...f:ffff 65535 65535\r\n"),
  "an address of the other family": line("PROXY TCP4 2001:db8::7 2001:db8::8 4660 80\r\n"),
  "no port": line("PROXY TCP4 203.0.113.7 192.0.2.1 4660\r\n"),
  "a word too many": line("PROXY TCP4 203.0.113.7 192.0.2.1 4660 80 81\r\n"),
  "two spaces": line("PROXY  TCP4 203.0.113.7 192.0.2.1 4660 80\r\n"),
  "another protocol": line("PROXY UDP4 203.0.113.7 192.0.2.1 4660 80\r\n"),
  "a port over 65535": line("PROXY TCP4 203.0.113.7 192.0.2.1 65536 80\r\n"),
  "no port number": line("PROXY TCP4 203.0.113.7 192.0.2.1 x 80\r\n"),
  "an address that is none": line("PROXY TCP4 203.0.113.256 192.0.2.1 4660 80\r\n"),
  "an address of many hosts": line("PROXY TCP4 224.0.0.1 192.0.2.1 4660 80\r\n"),
  "no address": line("PROXY TCP4 0.0.0.0 192.0.2.1 4660 80\r\n"),
  "all hosts": line("PROXY TCP4 203.0.113.7 255.255.255.255 4660 80\r\n"),
  "many hosts of IPv6": line("PROXY TCP6 ff02::1 2001:db8::8 4660 80\r\n"),
  "small letters": line("proxy TCP4 203.0.113.7 192.0.2.1 4660 80\r\n"),
  "an end too late": line(`PROXY UNKNOWN ${"x".repeat(200)}\r\n`),
  "version 2, IPv4": binary("2111", ipv4),
  "version 2, IPv6": binary("2121", ipv6),
  "version 2, datagrams": binary("2112", ipv4),
  "version 2, local": binary("2000", ""),
  "version 2, local with addresses": binary("2011", ipv4),
  "version 2, Unix": binary("2131", "00".repeat(216)),
  "version 2, no family": binary("2100", ""),
  "version 2, no transport": binary("2110", ipv4),
  "version 2, no such command": binary("2211", ipv4),
  "version 3": binary("3111", ipv4),
  "version 2, too short": binary("2111", ipv4.slice(0, -2)),
  "version 2, with an extension": binary("2111", `${ipv4}030004deadbeef`),
  "version 2, with an empty extension": binary("2111", `${ipv4}040000`),
  "version 2, an extension that is cut": binary("2111", `${ipv4}030005deadbeef`),
  "version 2, a byte behind the extensions": binary("2111", `${ipv4}030004deadbeef00`),
  "version 2, many hosts": binary("2111", `e0000001${ipv4.slice(8)}`),
  rubbish: Buffer.from("16030100", "hex"),
};

/** The answer's addresses, or `closed`. Bytes that are sent one by one arrive as the kernel likes. */
function dial(side: Side, listener: string, header: Buffer, oneByOne: boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host: "127.0.0.1", port: side.ports.get(listener)!, noDelay: true });
    const bytes = Buffer.concat([header, request]);
    let answer = "";
    socket.setEncoding("latin1").on("data", (text: string) => {
      answer += text;
      if (answer.includes("\r\n\r\n")) socket.destroy();
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "ECONNRESET" && error.code !== "EPIPE") reject(error);
    });
    socket.on("close", () => resolve(answer === "" ? "closed" : told(answer)));
    if (oneByOne) for (const byte of bytes) socket.write(Buffer.of(byte));
    else socket.write(bytes);
  });
}

/** Of a connection that no proxy has spoken for, ports are the kernel's, and Envoy names the machine for loopback. */
function told(answer: string): string {
  const value = (name: string): string => new RegExp(`^${name}: (.*?)\r$`, "m").exec(answer)?.[1] ?? "-";
  const seen = value("addresses").replaceAll(/(127\.0\.0\.1):\d+/g, "$1:port");
  return seen.startsWith("127.") ? seen : `${seen} for ${value("forwarded-for")}`;
}

for (const listener of Object.keys(settings)) {
  for (const [name, header] of Object.entries(headers)) {
    test(`${listener}: ${name}`, async () => {
      const [ours, piecemeal, envoys] = await Promise.all([
        dial(sides.ours, listener, header, false),
        dial(sides.ours, listener, header, true),
        dial(sides.envoy, listener, header, false),
      ]);
      assert.equal(ours, envoys);
      assert.equal(piecemeal, ours);
    });
  }
}

test("each outcome is counted where Envoy counts it", async () => {
  const name = /proxy_proto/;
  const ours = movedCounters(await countersOf(sides.ours, name));
  const envoys = movedCounters(await countersOf(sides.envoy, name));
  // This proxy was dialled twice for each of Envoy's.
  const halved = Object.fromEntries(Object.entries(ours).map(([key, value]) => [key, value / 2]));
  assert.deepEqual(halved, envoys);
});
