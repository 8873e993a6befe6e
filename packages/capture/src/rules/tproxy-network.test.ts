// TPROXY with traffic: a proxy in Node takes what comes in for any port, and calls the application from the client's
// own address, over IPv4 and IPv6.
import assert from "node:assert/strict";
import net from "node:net";
import { after, test } from "node:test";
import { startProcess } from "../../../../tests/tools/processes.ts";
import { addressBytes } from "../ip-address.ts";
import { transparentSocket } from "../kernel.ts";
import { CaptureNetwork, own, world } from "../testing/capture-network.ts";
import { planCapture, type CaptureSettings } from "./capture-plan.ts";
import { tproxyMark } from "./capture-rules.ts";
import { installCapture, installedRules, removeCapture } from "./install-capture.ts";
import { CaptureFailure } from "./network-tools.ts";

const network = await CaptureNetwork.open();
const options = { prefix: network.pod.enter };
after(() => removeCapture(options));

async function install(settings: CaptureSettings): Promise<void> {
  const { plan } = planCapture({ mode: "TPROXY", ...settings });
  await installCapture(plan!, options);
}

const anyAddress = new Uint8Array(16);
const proxied: string[] = [];

/** Each connection is passed on to where it was going, from where it came. */
function passOn(downstream: net.Socket): void {
  const { remoteAddress = "", localAddress = "", localPort = 0 } = downstream;
  const [from, to] = [remoteAddress, localAddress].map((ip) => ip.replace("::ffff:", "")) as [string, string];
  proxied.push(`${from} to ${to}:${localPort}`);
  const fd = network.pod.within(() => transparentSocket(addressBytes(from)!, 0, tproxyMark));
  const upstream = new net.Socket({ fd: fd!, manualStart: true } as net.SocketConstructorOpts);
  upstream.connect({ host: to, port: localPort });
  for (const [socket, other] of [
    [downstream, upstream],
    [upstream, downstream],
  ] as const) {
    // Nothing of a connection outlives its other side, or keeps this process.
    socket.on("error", () => undefined).on("close", () => other.destroy());
    socket.unref().pipe(other);
  }
}

function serveProxy(): net.Server {
  const server = net.createServer(passOn);
  const fd = network.pod.within(() => transparentSocket(anyAddress, 15_006));
  server.listen({ fd: fd! });
  return server.unref();
}

/** A program that tells whom it serves. */
const application = net.createServer((socket) => {
  const body = `served ${socket.remoteAddress?.replace("::ffff:", "")}`;
  socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`).resume();
});
network.pod.within(() => application.listen(7070));
application.unref();
let proxy = serveProxy();

test("the application sees the client's address, the proxy both ends", async () => {
  await install({});
  for (const [at, client] of [
    [own.ip, world.ip],
    [own.ip6, "fd77::1"],
    [own.second, world.second],
  ] as const) {
    proxied.length = 0;
    assert.equal(await network.callFromOutside(`${at}:7070`), `served ${client}`);
    assert.deepEqual(proxied, [`${client} to ${at.replace(/^\[(.*)\]$/, "$1")}:7070`]);
  }
});

test("what is excluded, what the pod calls itself, and what is dialled directly are as with REDIRECT", async () => {
  await install({});
  proxied.length = 0;
  assert.equal(await network.callFromOutside(`${own.ip}:15020`), `app ${own.ip}:15020`);
  assert.equal(await network.call(`${own.ip}:7070`), `served ${own.ip}`);
  assert.equal(await network.callFromOutside(`${own.ip}:15006`), "refused");
  await install({ includeInboundPorts: "8080" });
  assert.equal(await network.callFromOutside(`${own.ip}:7070`), `served ${world.ip}`);
  assert.deepEqual(proxied, []);
  await network.callFromOutside(`${own.ip}:8080`);
  assert.deepEqual(proxied, [`${world.ip} to ${own.ip}:8080`]);
});

test("without a proxy calls are refused at once, and nothing goes round it", async () => {
  await install({});
  proxy.close();
  try {
    assert.equal(await network.callFromOutside(`${own.ip}:7070`), "refused");
    assert.equal(await network.callFromOutside(`${own.ip6}:7070`), "refused");
  } finally {
    proxy = serveProxy();
  }
});

test("connections that began before go on", async () => {
  await removeCapture(options);
  using connection = network.connect("world", own.ip, 8080);
  const answer = `app ${own.ip}:8080`;
  assert.equal(await connection.ask(), answer);
  await install({});
  assert.equal(await connection.ask(), answer);
});

const routes = async (): Promise<readonly string[]> => {
  const all = ["-4 rule", "-6 rule", "-4 route show table all", "-6 route show table all"].map(async (words) => {
    const lines = (await network.pod.mustRun("ip", ...words.split(" "))).split("\n");
    return lines.filter((line) => /fwmark|table 133|lookup 133/.test(line)).map((line) => line.trim());
  });
  return (await Promise.all(all)).flat();
};

test("routes come and go with the rules, once each, and also where the rules cannot be made", async () => {
  await install({});
  await install({});
  assert.equal((await routes()).length, 4, JSON.stringify(await routes()));
  await install({ mode: "REDIRECT" });
  assert.deepEqual(await routes(), []);
  await install({});
  await removeCapture(options);
  assert.deepEqual(await routes(), []);
  assert.equal(await installedRules(options), undefined);
  const refusing = ["sh", "-c", 'test "$0 $1" = "nft -f" && exit 1; exec "$0" "$@"'];
  const { plan } = planCapture({ mode: "TPROXY" });
  await assert.rejects(installCapture(plan!, { prefix: [...network.pod.enter, ...refusing] }), CaptureFailure);
  assert.deepEqual(await routes(), []);
});

test("a program that is not root makes no such socket", async () => {
  const kernel = new URL("../kernel.ts", import.meta.url).href;
  const program = `
    const { transparentSocket } = await import(${JSON.stringify(kernel)});
    process.setgroups([]); process.setgid(1337); process.setuid(1337);
    console.log(transparentSocket(Uint8Array.of(10, 77, 0, 1), 0), transparentSocket(Uint8Array.of(127, 0, 0, 1), 0, 1337));`;
  await using started = await startProcess(process.execPath, ["--input-type=module", "-e", program]);
  await started.waitForOutput(/^undefined undefined$/m);
});
