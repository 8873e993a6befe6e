// The rules in the kernel: programs that know nothing of a proxy, in a pod's network of the test's own, over IPv4 and
// IPv6. Each row is a call and who answered it, with the destination that the proxy is told.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { CaptureNetwork, dnsAnswers, own, world, type OpenConnection, type Who } from "../testing/capture-network.ts";
import { planCapture, type CaptureSettings } from "./capture-plan.ts";
import { captureRules, removalRules } from "./capture-rules.ts";
import { applyRules, installCapture, installedRules, removeCapture } from "./install-capture.ts";
import { CaptureFailure } from "./network-tools.ts";

const network = await CaptureNetwork.open();
const options = { prefix: network.pod.enter };
let proxy = network.serveProxy();
after(() => removeCapture(options));

async function install(settings: CaptureSettings): Promise<void> {
  const { plan, problems } = planCapture(settings);
  assert.deepEqual(problems, []);
  await installCapture(plan!, options);
}

interface Call {
  readonly to: string;
  readonly who?: Who | "outside";
  /** curl's own options. */
  readonly args?: readonly string[];
  readonly answer: string;
}

interface Scene {
  readonly name: string;
  readonly settings: CaptureSettings;
  readonly calls: readonly Call[];
}

const scenes: readonly Scene[] = [
  {
    name: "by default all that programs send, to any address and port",
    settings: {},
    calls: [
      { to: world.ip, answer: `outbound ${world.ip}:80` },
      { to: world.ip6, answer: `outbound ${world.ip6}:80` },
      { to: `${world.far}:5000`, answer: `outbound ${world.far}:5000` },
      { to: `${world.far6}:5000`, answer: `outbound ${world.far6}:5000` },
      { to: `${world.ip}:15001`, answer: `outbound ${world.ip}:15001` },
      { to: "192.0.2.99:1", answer: "outbound 192.0.2.99:1" },
    ],
  },
  {
    name: "but for the proxy's own, by user and by group",
    settings: {},
    calls: [
      { to: world.ip, who: "proxy", answer: `world ${world.ip}:80` },
      { to: world.ip6, who: "proxy", answer: `world ${world.ip6}:80` },
      { to: world.ip, who: "proxy-group", answer: `world ${world.ip}:80` },
      { to: world.ip6, who: "proxy-group", answer: `world ${world.ip6}:80` },
    ],
  },
  {
    name: "by default all that comes in, but for what the platform asks and the tunnel",
    settings: {},
    calls: [
      { to: `${own.ip}:8080`, who: "outside", answer: `inbound ${own.ip}:8080` },
      { to: `${own.ip6}:8080`, who: "outside", answer: `inbound ${own.ip6}:8080` },
      { to: `${own.second}:4321`, who: "outside", answer: `inbound ${own.second}:4321` },
      { to: `${own.ip}:15020`, who: "outside", answer: `app ${own.ip}:15020` },
      { to: `${own.ip}:15008`, who: "outside", answer: `app ${own.ip}:15008` },
      { to: `${own.ip}:15053`, who: "outside", answer: `inbound ${own.ip}:15053` },
    ],
  },
  {
    name: "programs of one pod speak to each other directly",
    settings: {},
    calls: [
      { to: "127.0.0.1:8080", answer: "app 127.0.0.1:8080" },
      { to: "[::1]:8080", answer: "app [::1]:8080" },
      { to: `${own.ip}:8080`, answer: `app ${own.ip}:8080` },
      { to: `${own.ip6}:8080`, answer: `app ${own.ip6}:8080` },
    ],
  },
  {
    name: "the proxy comes in like any other where it calls its own pod, and from 127.0.0.6 reaches the application",
    settings: {},
    calls: [
      { to: `${own.ip}:8080`, who: "proxy", answer: `inbound ${own.ip}:8080` },
      { to: `${own.ip6}:8080`, who: "proxy-group", answer: `inbound ${own.ip6}:8080` },
      { to: `${own.ip}:8080`, who: "proxy", args: ["--interface", "127.0.0.6"], answer: `app ${own.ip}:8080` },
      { to: "127.0.0.1:8080", who: "proxy", answer: "app 127.0.0.1:8080" },
      { to: "[::1]:8080", who: "proxy", answer: "app [::1]:8080" },
      { to: `${own.ip}:15020`, who: "proxy", answer: `app ${own.ip}:15020` },
    ],
  },
  {
    name: "nobody dials the ports of capture themselves: no circle",
    settings: {},
    calls: [
      ...[own.ip, own.ip6, "127.0.0.1"].flatMap((ip) =>
        [15_001, 15_006].flatMap((port) => [
          { to: `${ip}:${port}`, answer: "refused" },
          { to: `${ip}:${port}`, who: "proxy" as const, answer: "refused" },
        ]),
      ),
      ...[own.ip6, own.second].flatMap((ip) =>
        [15_001, 15_006].map((port) => ({ to: `${ip}:${port}`, who: "outside" as const, answer: "refused" })),
      ),
      { to: "127.0.0.1:15001", args: ["--interface", "127.0.0.6"], answer: "refused" },
    ],
  },
  {
    name: "inbound: some ports alone",
    settings: { includeInboundPorts: "9090,15001" },
    calls: [
      { to: `${own.ip}:9090`, who: "outside", answer: `inbound ${own.ip}:9090` },
      { to: `${own.ip6}:9090`, who: "outside", answer: `inbound ${own.ip6}:9090` },
      { to: `${own.ip}:8080`, who: "outside", answer: `app ${own.ip}:8080` },
      { to: `${own.ip}:15001`, who: "outside", answer: "refused" },
    ],
  },
  {
    name: "inbound: all ports but some, whose place the default ones leave",
    settings: { excludeInboundPorts: "8080" },
    calls: [
      { to: `${own.ip}:8080`, who: "outside", answer: `app ${own.ip}:8080` },
      { to: `${own.ip}:9090`, who: "outside", answer: `inbound ${own.ip}:9090` },
      { to: `${own.ip}:15020`, who: "outside", answer: `inbound ${own.ip}:15020` },
    ],
  },
  {
    name: "nothing that comes in, nothing that goes out",
    settings: { includeInboundPorts: "", includeOutboundIpRanges: "" },
    calls: [
      { to: `${own.ip}:8080`, who: "outside", answer: `app ${own.ip}:8080` },
      { to: world.ip, answer: `world ${world.ip}:80` },
      { to: world.ip6, answer: `world ${world.ip6}:80` },
    ],
  },
  {
    name: "outbound: some ranges alone, less a part of them, and a port wherever it is",
    settings: {
      includeOutboundIpRanges: "10.88.0.0/16,10.88.0.0/24,fd88::/64,127.0.0.2",
      excludeOutboundIpRanges: "10.88.0.1",
      includeOutboundPorts: "443",
    },
    calls: [
      { to: world.ip, answer: `world ${world.ip}:80` },
      { to: world.ip6, answer: `world ${world.ip6}:80` },
      { to: world.far, answer: `world ${world.far}:80` },
      { to: "10.88.0.2", answer: "outbound 10.88.0.2:80" },
      { to: world.far6, answer: `outbound ${world.far6}:80` },
      { to: `${world.ip}:443`, answer: `outbound ${world.ip}:443` },
      { to: `${world.far}:443`, answer: `world ${world.far}:443` },
      { to: "127.0.0.2:8080", answer: "outbound 127.0.0.2:8080" },
      { to: "127.0.0.3:8080", answer: "app 127.0.0.3:8080" },
    ],
  },
  {
    name: "outbound: all ranges but some, all ports but one",
    settings: { excludeOutboundIpRanges: "10.88.0.0/16,fd77::/64", excludeOutboundPorts: "5000" },
    calls: [
      { to: world.far, answer: `world ${world.far}:80` },
      { to: world.far6, answer: `outbound ${world.far6}:80` },
      { to: world.ip6, answer: `world ${world.ip6}:80` },
      { to: world.ip, answer: `outbound ${world.ip}:80` },
      { to: `${world.ip}:5000`, answer: `world ${world.ip}:5000` },
    ],
  },
  {
    name: "outbound: no address of a family",
    settings: { excludeOutboundIpRanges: "0.0.0.0/0" },
    calls: [
      { to: world.ip, answer: `world ${world.ip}:80` },
      { to: world.ip6, answer: `outbound ${world.ip6}:80` },
    ],
  },
  {
    name: "nothing at an interface that is excluded",
    settings: { excludeInterfaces: "eth1,eth9" },
    calls: [
      { to: world.second, answer: `world ${world.second}:80` },
      { to: `${own.second}:8080`, who: "outside", answer: `app ${own.second}:8080` },
      { to: world.ip, answer: `outbound ${world.ip}:80` },
      { to: `${own.ip}:8080`, who: "outside", answer: `inbound ${own.ip}:8080` },
    ],
  },
  {
    name: "what a virtual machine within the pod sends counts as the pod's",
    settings: { virtualInterfaces: "eth1", excludeOutboundIpRanges: "10.78.0.2" },
    calls: [
      { to: `${own.ip}:8080`, who: "outside", answer: `inbound ${own.ip}:8080` },
      { to: `${own.second}:8080`, who: "outside", answer: `app ${own.second}:8080` },
    ],
  },
];

for (const { name, settings, calls } of scenes) {
  test(name, async () => {
    await install(settings);
    const answers = await Promise.all(
      calls.map(async ({ to, who = "app", args = [] }) => {
        const answer = who === "outside" ? network.callFromOutside(to) : network.call(to, who, ...args);
        return `${who} to ${to}: ${await answer}`;
      }),
    );
    assert.deepEqual(
      answers,
      calls.map(({ to, who = "app", answer }) => `${who} to ${to}: ${answer}`),
    );
  });
}

describe("DNS", () => {
  const answers = async (servers: readonly string[], who?: Who): Promise<readonly string[]> =>
    Promise.all(servers.map((server) => network.lookUp(server, who)));

  test("questions to the servers of resolv.conf go to the proxy, and others where they were sent", async () => {
    await install({ dns: "resolvers", nameservers: [world.ip, "fd77::1"], includeOutboundIpRanges: "" });
    assert.deepEqual(await answers([world.ip, world.ip6]), [dnsAnswers.proxy, dnsAnswers.proxy]);
    assert.deepEqual(await answers([world.far, world.far6]), [dnsAnswers.world, dnsAnswers.world]);
    assert.equal(await network.call(`${world.ip}:53`), `dns ${world.ip}:53`);
    assert.equal(await network.call(`${world.ip6}:53`), `dns ${world.ip6}:53`);
    assert.equal(await network.call(`${world.far}:53`), `world ${world.far}:53`);
  });

  test("questions to any server do; the proxy's own reach the server", async () => {
    await install({ dns: "all" });
    assert.deepEqual(await answers([world.far, world.far6]), [dnsAnswers.proxy, dnsAnswers.proxy]);
    assert.deepEqual(await answers([world.ip, world.ip6], "proxy"), [dnsAnswers.world, dnsAnswers.world]);
    assert.deepEqual(await answers([world.ip], "proxy-group"), [dnsAnswers.world]);
    assert.equal(await network.call(`${world.far}:53`, "proxy"), `world ${world.far}:53`);
  });
});

test("the proxy's question is its own, though a program asked the same server from the same port a moment ago", async () => {
  const port = 40_000;
  for (const settings of [{ dns: "all" }, { dns: "resolvers", nameservers: [world.ip] }] as const) {
    await install(settings);
    assert.equal(await network.lookUpFromPort(world.ip, port, "app"), dnsAnswers.proxy);
    assert.equal(await network.lookUpFromPort(world.ip, port, "proxy"), dnsAnswers.world);
    assert.equal(await network.lookUpFromPort(world.ip, port, "proxy-group"), dnsAnswers.world);
    assert.equal(await network.lookUpFromPort(world.ip, port, "app"), dnsAnswers.proxy);
  }
});

test("connections that began before go on, captured ones survive an installation, and end when it is removed", async () => {
  await removeCapture(options);
  using open = new DisposableStack();
  const connectAll = (): readonly OpenConnection[] =>
    [
      network.connect("pod", world.ip, 80),
      network.connect("pod", "fd77::1", 80),
      network.connect("world", own.ip, 8080),
      network.connect("world", "fd77::2", 8080),
    ].map((connection) => open.use(connection));
  const askAll = (all: readonly OpenConnection[]): Promise<readonly string[]> =>
    Promise.all(all.map((each) => each.ask()));
  const ends = [`${world.ip}:80`, `${world.ip6}:80`, `${own.ip}:8080`, `${own.ip6}:8080`];
  const answers = (names: readonly string[]): readonly string[] => ends.map((end, index) => `${names[index]} ${end}`);

  const before = connectAll();
  const direct = answers(["world", "world", "app", "app"]);
  assert.deepEqual(await askAll(before), direct);
  await install({});
  assert.deepEqual(await askAll(before), direct);
  const captured = connectAll();
  const byProxy = answers(["outbound", "outbound", "inbound", "inbound"]);
  assert.deepEqual(await askAll(captured), byProxy);
  await install({ excludeOutboundPorts: "80", includeInboundPorts: "" });
  assert.deepEqual(await askAll(captured), byProxy);
  assert.deepEqual(await askAll(before), direct);
  await removeCapture(options);
  assert.deepEqual(
    await askAll(captured),
    ends.map(() => "ECONNRESET"),
  );
  assert.deepEqual(await askAll(before), direct);
});

test("without a proxy calls are refused at once, and nothing goes round it", async () => {
  await install({ dns: "all" });
  proxy[Symbol.dispose]();
  try {
    const refused = ["refused", "refused", "refused", "refused", "ECONNREFUSED"];
    const calls = [
      network.call(world.ip),
      network.call(world.ip6),
      network.callFromOutside(`${own.ip}:8080`),
      network.callFromOutside(`${own.ip6}:8080`),
      network.lookUp(world.ip),
    ];
    assert.deepEqual(await Promise.all(calls), refused);
    assert.equal(await network.call(world.ip, "proxy"), `world ${world.ip}:80`);
  } finally {
    proxy = network.serveProxy();
  }
});

const nobody = ["--reuid", "65534", "--regid", "65534"];
const curl = ["curl", "-sS", "--noproxy", "*", "--max-time", "30"];
const attacks: readonly { readonly name: string; readonly command: readonly string[] }[] = [
  { name: "a member of the proxy's group", command: ["setpriv", ...nobody, "--groups", "1337", ...curl] },
  {
    name: "who calls himself the proxy in a user namespace of his own",
    command: ["setpriv", ...nobody, "--clear-groups", "unshare", "--map-user=1337", "--map-group=1337", ...curl],
  },
  {
    name: "who calls from 127.0.0.6",
    command: ["setpriv", ...nobody, "--clear-groups", ...curl, "--interface", "127.0.0.6"],
  },
  {
    name: "who gets into the group by a file that takes no effect any more",
    command: [
      "setpriv",
      ...nobody,
      "--groups",
      "1337",
      "--no-new-privs",
      "sh",
      "-c",
      'd=$(mktemp -d); cp "$(command -v curl)" $d/x; chgrp 1337 $d/x; chmod g+s $d/x; $d/x -sS --noproxy "*" "$@"; rm -r $d',
      "sh",
    ],
  },
  {
    name: "who removes the table as root of a user namespace",
    command: [
      "setpriv",
      ...nobody,
      "--clear-groups",
      "unshare",
      "--map-root-user",
      "sh",
      "-c",
      'nft delete table inet tulle_capture; exec curl -sS --noproxy "*" "$@"',
      "sh",
    ],
  },
];
for (const { name, command } of attacks) {
  test(`${name} does not go round the proxy`, async () => {
    await install({});
    const [program, ...args] = command;
    const { stdout } = await network.pod.run(program!, ...args, `http://${world.ip}/`);
    // A system may refuse the attempt itself.
    assert.ok(["", `outbound ${world.ip}:80`].includes(stdout), stdout);
  });
}

test("what is removed is gone, also where there is nothing", async () => {
  await install({});
  await removeCapture(options);
  await removeCapture(options);
  assert.equal(await installedRules(options), undefined);
  assert.equal(await network.call(world.ip), `world ${world.ip}:80`);
  assert.equal(await network.callFromOutside(`${own.ip}:8080`), `app ${own.ip}:8080`);
});

test("a transaction whose last line is wrong leaves what was there", async () => {
  await removeCapture(options);
  const rules = captureRules(planCapture({}).plan!);
  const wrong = rules.replace(/\}\n$/, "  chain last { redirect to :0x }\n}\n");
  assert.notEqual(wrong, rules);
  await assert.rejects(applyRules(wrong, options), CaptureFailure);
  assert.equal(await installedRules(options), undefined);
  await install({});
  const before = await installedRules(options);
  await assert.rejects(
    applyRules(`${removalRules}add rule inet tulle_capture nowhere accept\n`, options),
    CaptureFailure,
  );
  assert.equal(await installedRules(options), before);
  await install({});
  assert.equal(await installedRules(options), before);
});
