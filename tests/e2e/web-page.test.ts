// A page of the web in a real browser of the person who runs a mesh: what it tries at the control plane's API and at a
// proxy's admin pages, from another origin, and under a name that its owner points there (DNS rebinding). It reads
// nothing but that it was refused, and changes nothing.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import net from "node:net";
import path from "node:path";
import { describe, test } from "node:test";
import { chromium, type Page } from "playwright-core";
import { loadText } from "@tulle/config";
import { endpoints } from "@tulle/config/api";
import { chromiumArguments, headlessShellPath } from "../tools/chromium-path.ts";
import { freeAddressBlock } from "../tools/processes.ts";
import { useRunningShop } from "./running-shop.ts";
import { httpRequest, type ShopInstance } from "./shop-instance.ts";
import { addressesOf } from "./squatter-process.ts";

/** All that a page is told; `status` 0 is a browser's "opaque", of which a page sees no word. */
interface Outcome {
  readonly tried: string;
  readonly status?: number;
  readonly text?: string;
  readonly failed?: string;
}

/** A name that the page's owner points to the page's server first, and then to what it is after. */
const rebound = "rebound.test";

/** What a page tries at one place: the body of a function of `base`, `reads` and `writes`, in the browser. */
const attack = String.raw`
const outcomes = [];
const tell = async (tried, request) => {
  try {
    const response = await request();
    outcomes.push({ tried, status: response.status, text: await response.text() });
  } catch (error) {
    outcomes.push({ tried, failed: String(error) });
  }
};
const event = (target, ...names) =>
  new Promise((resolve) => names.forEach((name) => target.addEventListener(name, resolve, { once: true })));
for (const at of reads) {
  await tell("GET " + base + at, () => fetch(base + at));
  await tell("GET, no CORS, " + base + at, () => fetch(base + at, { mode: "no-cors" }));
  await tell("GET with a guessed token, " + base + at, () =>
    fetch(base + at, { headers: { authorization: "Bearer x" } }));
  const script = document.createElement("script");
  script.src = base + at;
  const loaded = event(script, "load", "error");
  document.head.append(script);
  await loaded;
  const socket = new WebSocket(base.replace("http", "ws") + at);
  await event(socket, "open", "error");
  if (socket.readyState === WebSocket.OPEN) outcomes.push({ tried: "WebSocket " + base + at, text: "open" });
  const events = new EventSource(base + at);
  await event(events, "open", "error");
  if (events.readyState === EventSource.OPEN) outcomes.push({ tried: "events " + base + at, text: "open" });
  events.close();
}
const form = new FormData();
form.append("level", "trace");
// Those that a page may send anywhere without asking first (Fetch, "CORS-safelisted request-header").
const bodies = [
  ["text", new Blob(['{"full":true}'], { type: "text/plain" })],
  ["form", new URLSearchParams({ level: "trace" })],
  ["multipart", form],
];
for (const [method, at] of writes) {
  for (const [type, body] of bodies) {
    await tell(method + " of " + type + " " + base + at, () => fetch(base + at, { method, body }));
    if (method !== "POST") continue;
    await tell("POST of " + type + ", no CORS, " + base + at, () =>
      fetch(base + at, { method, body, mode: "no-cors" }));
    navigator.sendBeacon(base + at, body);
  }
  const frame = document.createElement("iframe");
  frame.name = "frame " + method + base + at;
  const sent = document.createElement("form");
  Object.assign(sent, { action: base + at, method: "post", enctype: "text/plain", target: frame.name });
  document.body.append(frame, sent);
  const answered = event(frame, "load");
  sent.submit();
  await answered;
}
return outcomes;
`;

interface Attack {
  readonly base: string;
  readonly reads: readonly string[];
  readonly writes: readonly (readonly [method: string, at: string])[];
}

function run(page: Page, { base, reads, writes }: Attack): Promise<readonly Outcome[]> {
  const given = [base, reads, writes].map((value) => JSON.stringify(value)).join(", ");
  return page.evaluate(`(async (base, reads, writes) => {${attack}})(${given})`);
}

/** The page's server; where `rebind` says so, a way to another address, as the same name would lead after a while. */
class PageServer implements AsyncDisposable {
  readonly #pages = createServer((_request, response) => {
    response.setHeader("content-type", "text/html").end("<!doctype html><title>Page</title><body></body>");
  });
  readonly #sockets = new Set<net.Socket>();
  readonly #server = net.createServer((socket) => {
    this.#sockets.add(socket);
    const { target } = this;
    if (target === undefined) {
      this.#pages.emit("connection", socket);
      return;
    }
    const there = net.connect(target).on("error", () => socket.destroy());
    socket.on("error", () => there.destroy());
    socket.pipe(there).pipe(socket);
  });
  target: { readonly host: string; readonly port: number } | undefined;

  async listen(host: string, port: number): Promise<void> {
    this.#server.listen(port, host);
    await once(this.#server, "listening");
  }

  rebind(target: NonNullable<PageServer["target"]>): void {
    this.target = target;
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** All that a page under its own name is told. */
const refused = /this API answers programs of this machine|over TCP in the clear only|the Host must be/;

describe("a page of the web", () => {
  let shop: ShopInstance;
  useRunningShop("Tulle's proxy", (running) => (shop = running));

  test("reads and changes nothing, from another origin or under a name that leads here", async () => {
    const file = path.join(shop.folder, "rollouts", "catalog.yaml");
    for (const resource of loadText(await readFile(file, "utf8"), file).resources) await shop.api().apply(resource);
    const { api } = await addressesOf(shop);
    const pod = await shop.pod("webapp");
    const admin = `${pod.address}:15000`;
    const ofApi: Omit<Attack, "base"> = {
      reads: ["/api/v1/changes", "/api/v1/rollouts/shop/catalog"],
      writes: [
        ["POST", "/api/v1/rollouts/shop/catalog/start"],
        ["POST", "/api/v1/ca/rotate-root"],
        ["PUT", "/api/v1/resources/Rollout/shop/catalog"],
      ],
    };
    const ofAdmin: Omit<Attack, "base"> = {
      reads: ["/config_dump", "/stats/prometheus"],
      writes: [
        ["POST", "/logging?level=trace"],
        ["POST", "/quitquitquit"],
      ],
    };
    const state = async () => {
      const [{ changes }, view, processes, ca, logging] = [
        await shop.api().call(endpoints.changes, {}),
        await shop.api().call(endpoints.rollout, { namespace: "shop", name: "catalog" }),
        await shop.processes(),
        await shop.read("/api/v1/ca"),
        await httpRequest(`http://${admin}/logging`, { method: "POST" }),
      ];
      return {
        newest: changes.at(-1)?.id,
        view,
        processes: [...processes].map((each) => each.join(" ")).toSorted(),
        ca,
        logging: logging.body,
      };
    };
    const before = await state();
    const address = `${await freeAddressBlock()}.1`;
    await using browser = await chromium.launch({
      executablePath: await headlessShellPath(),
      args: [...chromiumArguments, `--host-resolver-rules=MAP ${rebound} ${address}`],
    });
    // A person may have clicked past the certificate.
    const context = await browser.newContext({ ignoreHTTPSErrors: true });
    const outcomes: Outcome[] = [];
    for (const [at, attacks] of [
      [api, ofApi],
      [admin, ofAdmin],
    ] as const) {
      const [host = "", port = ""] = at.split(":");
      await using server = new PageServer();
      await server.listen(address, Number(port));
      const page = await context.newPage();
      for (const [origin, base] of [
        [`http://${rebound}:${port}`, `http://${at}`],
        // An address of this machine, where the proof is the token alone.
        [`http://${address}:${port}`, at === api ? `https://${at}` : `http://${at}`],
      ] as const) {
        await page.goto(origin);
        outcomes.push(...(await run(page, { base, ...attacks })));
      }
      await page.goto(`http://${rebound}:${port}`);
      server.rebind({ host, port: Number(port) });
      const sameOrigin = await run(page, { base: `http://${rebound}:${port}`, ...attacks });
      // It did get there, and was told so.
      assert.ok(sameOrigin.some(({ status }) => status === 403));
      outcomes.push(...sameOrigin);
      await page.close();
    }

    const allowed = ({ status, text, failed }: Outcome): boolean =>
      failed !== undefined || (status === 0 && text === "") || (status === 403 && refused.test(text ?? ""));
    assert.deepEqual(
      outcomes.filter((outcome) => !allowed(outcome)),
      [],
    );
    assert.ok(outcomes.length > 50);
    assert.deepEqual(await state(), before);
  });
});
