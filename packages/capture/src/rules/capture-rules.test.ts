// The rules as text: what nft is told. What the kernel makes of them: capture-network.test.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { planCapture, type CaptureSettings } from "./capture-plan.ts";
import { captureRules } from "./capture-rules.ts";

function rulesOf(settings: CaptureSettings): string {
  const { plan, problems } = planCapture(settings);
  assert.deepEqual(problems, []);
  return captureRules(plan!);
}

test("everything, but for the proxy's own", () => {
  assert.equal(
    rulesOf({}),
    `add table inet tulle_capture
delete table inet tulle_capture
table inet tulle_capture {
  chain prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    # A connection that began before this table goes on as it is.
    tcp flags & (syn | ack) != syn accept
    meta l4proto tcp goto inbound
  }

  chain output {
    type nat hook output priority -100; policy accept;
    # A connection that began before this table goes on as it is.
    tcp flags & (syn | ack) != syn accept
    meta skuid 1337 goto of_proxy
    meta skgid 1337 goto of_proxy
    # Programs of the pod speak to each other directly.
    oifname "lo" accept
    goto outbound
  }

  chain of_proxy {
    # From there it calls the pod's application.
    oifname "lo" ip saddr 127.0.0.6 accept
    oifname "lo" ip6 saddr ::6 accept
    # A program called its own Service, and the proxy chose this very pod: it comes in like any other call.
    oifname "lo" ip daddr != 127.0.0.0/8 meta l4proto tcp goto inbound
    oifname "lo" ip6 daddr != ::1 meta l4proto tcp goto inbound
  }

  chain inbound {
    tcp dport { 15001, 15006, 15008, 15020, 15021, 15090 } accept
    meta l4proto tcp redirect to :15006
  }

  chain outbound {
    meta l4proto tcp redirect to :15001
  }

  chain input {
    type filter hook input priority filter; policy accept;
    tcp dport { 15001, 15006 } ct status dnat accept
    # Nothing was redirected here: the proxy would be told its own address, and would dial itself.
    tcp dport { 15001, 15006 } ct state new reject with tcp reset
  }
}
`,
  );
});

test("every choice", () => {
  const rules = rulesOf({
    proxyUid: "1337,0",
    proxyGid: "",
    outboundPort: "1",
    inboundPort: "2",
    tunnelPort: "3",
    includeInboundPorts: "443, 80,80,1",
    includeOutboundIpRanges: "10.0.0.0/8,10.96.0.2/24,fd00::1/64,127.0.0.2",
    excludeOutboundIpRanges: "10.1.2.3,10.1.2.3/32",
    includeOutboundPorts: "8443",
    excludeOutboundPorts: "25,26",
    excludeInterfaces: "eth1",
    virtualInterfaces: "tap0,tap1",
    dns: "resolvers",
    nameservers: ["10.96.0.10", "fe80::1%eth0", "fd00::10", "127.0.0.53"],
  });
  const lines = rules.split("\n").filter((line) => !/^(add|delete)|^\s*(#|$)/.test(line));
  assert.equal(
    lines.join("\n"),
    `table inet tulle_capture {
  chain prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    iifname "eth1" accept
    tcp flags & (syn | ack) != syn accept
    iifname { "tap0", "tap1" } goto outbound
    meta l4proto tcp goto inbound
  }
  chain output {
    type nat hook output priority -100; policy accept;
    oifname "eth1" accept
    tcp flags & (syn | ack) != syn accept
    tcp dport { 25, 26 } accept
    udp dport { 25, 26 } accept
    meta skuid { 0, 1337 } goto of_proxy
    udp dport 53 ip daddr { 10.96.0.10, 127.0.0.53 } redirect to :15053
    udp dport 53 ip6 daddr fd00::10 redirect to :15053
    tcp dport 53 ip daddr { 10.96.0.10, 127.0.0.53 } redirect to :15053
    tcp dport 53 ip6 daddr fd00::10 redirect to :15053
    meta l4proto tcp ip daddr 127.0.0.2 redirect to :1
    oifname "lo" accept
    goto outbound
  }
  chain of_proxy {
    oifname "lo" ip saddr 127.0.0.6 accept
    oifname "lo" ip6 saddr ::6 accept
    oifname "lo" ip daddr != 127.0.0.0/8 meta l4proto tcp tcp dport != 53 goto inbound
    oifname "lo" ip6 daddr != ::1 meta l4proto tcp tcp dport != 53 goto inbound
  }
  chain inbound {
    tcp dport { 80, 443 } redirect to :2
  }
  chain outbound {
    ip daddr 10.1.2.3 accept
    tcp dport 8443 redirect to :1
    meta l4proto tcp ip daddr { 10.0.0.0/8, 127.0.0.2 } redirect to :1
    meta l4proto tcp ip6 daddr fd00::/64 redirect to :1
  }
  chain input {
    type filter hook input priority filter; policy accept;
    tcp dport { 1, 2 } ct status dnat accept
    tcp dport { 1, 2 } ct state new reject with tcp reset
  }
  chain dns_questions {
    type filter hook output priority raw; policy accept;
    udp dport 53 meta skuid { 0, 1337 } ct zone set 1
  }
  chain dns_answers {
    type filter hook prerouting priority raw; policy accept;
    udp sport 53 ip saddr { 10.96.0.10, 127.0.0.53 } ct zone set 1
    udp sport 53 ip6 saddr fd00::10 ct zone set 1
  }
}`,
  );
});

test("TPROXY: what comes in keeps its destination, and the application's answers turn back to the proxy", () => {
  const added = (settings: CaptureSettings): string => {
    const redirect = rulesOf(settings).split("\n");
    const lines = rulesOf({ ...settings, mode: "TPROXY" }).split("\n");
    return lines.filter((line) => !redirect.includes(line) && !line.includes("#")).join("\n");
  };
  assert.equal(
    added({ excludeInterfaces: "eth1", virtualInterfaces: "tap0" }),
    `    oifname "lo" meta mark 1337 accept
  chain transparent_inbound {
    type filter hook prerouting priority mangle; policy accept;
    iifname { "eth1", "tap0" } accept
    iifname "lo" accept
    meta l4proto != tcp accept
    meta nfproto ipv4 meta l4proto tcp tproxy ip to :15006 accept
    meta nfproto ipv6 meta l4proto tcp tproxy ip6 to :15006 accept
    meta l4proto tcp reject with tcp reset
  chain transparent_answers {
    type route hook output priority mangle; policy accept;
    meta mark 1337 ct mark set 1337 accept
    ct mark 1337 meta mark set 1337`,
  );
  assert.match(added({ includeInboundPorts: "80,15006" }), /tcp dport != 80 accept\n.*tproxy/);
  assert.doesNotMatch(added({ includeInboundPorts: "" }), /tproxy|reject/);
});

const long = Array.from({ length: 1001 }, (_, index) => String(index + 1)).join(",");
const wrong: readonly { readonly settings: CaptureSettings; readonly problems: readonly string[] }[] = [
  {
    settings: { outboundPort: "0", inboundPort: "65536", tunnelPort: "1e3", dnsPort: "" },
    problems: [
      'outboundPort "0" is not a port: a whole number from 1 to 65535',
      'inboundPort "65536" is not a port: a whole number from 1 to 65535',
      'tunnelPort "1e3" is not a port: a whole number from 1 to 65535',
      'dnsPort "" is not a port: a whole number from 1 to 65535',
    ],
  },
  {
    settings: { includeInboundPorts: "80,*", excludeInboundPorts: "80,,443", includeOutboundPorts: long },
    problems: [
      "excludeInboundPorts has a comma with nothing on one side",
      'includeInboundPorts has "*" among others; it stands alone, where a list may be everything',
      "includeOutboundPorts has 1001 entries; at most 1000 go",
    ],
  },
  {
    settings: {
      includeOutboundIpRanges: "10.0.0.0/33",
      excludeOutboundIpRanges: "*",
    },
    problems: [
      'includeOutboundIpRanges "10.0.0.0/33" is no range of addresses, such as 10.0.0.0/8',
      'excludeOutboundIpRanges has "*" among others; it stands alone, where a list may be everything',
    ],
  },
  {
    // Nothing of what a person writes reaches nft but what was read.
    settings: { excludeInterfaces: 'eth0"; } flush ruleset #', includeOutboundIpRanges: "1.2.3.4 } accept\n" },
    problems: [
      'includeOutboundIpRanges "1.2.3.4 } accept" is no range of addresses, such as 10.0.0.0/8',
      'excludeInterfaces "eth0\\"; } flush ruleset #" is no name of a network interface, such as eth0',
    ],
  },
  {
    settings: { proxyUid: "tulle", proxyGid: "4294967295" },
    problems: [
      'proxyUid "tulle" is not the number of a user or group: a whole number from 0 to 4294967294',
      'proxyGid "4294967295" is not the number of a user or group: a whole number from 0 to 4294967294',
    ],
  },
  {
    settings: {
      proxyUid: "",
      inboundPort: "15001",
      virtualInterfaces: "a,b",
      excludeInterfaces: "b",
      dns: "resolvers",
    },
    problems: [
      "inboundPort is 15001, as the outbound port is: the proxy could not tell them apart",
      "proxyUid is empty, as is proxyGid: what the proxy sends would come back to it",
      "virtualInterfaces has b, which excludeInterfaces has, too",
      "dns finds no name server: no line `nameserver ADDRESS` in resolv.conf",
    ],
  },
];
for (const { settings, problems } of wrong) {
  test(`${Object.keys(settings).join(", ")}: what is wrong is told of each`, () => {
    const { plan, problems: found } = planCapture(settings);
    assert.equal(plan, undefined);
    assert.deepEqual(
      found.map(({ setting, message }) => `${setting} ${message}`),
      problems,
    );
  });
}
