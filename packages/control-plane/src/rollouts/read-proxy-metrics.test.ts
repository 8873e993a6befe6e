// Metrics of pods that answer well, badly and not at all. Each stands on an address of its own, at Istio's port.
import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { once } from "node:events";
import { test } from "node:test";
import { freeAddressBlock } from "../../../../tests/tools/processes.ts";
import { AgentSockets } from "./agent-sockets.ts";
import { readProxyMetrics } from "./read-proxy-metrics.ts";

const believed = { stranger: () => undefined };

const rows: readonly {
  readonly name: string;
  readonly answer: RequestListener;
  readonly expected: readonly string[] | undefined;
}[] = [
  {
    name: "the wanted lines, the last one without an end",
    answer: (_request, response) => {
      response.write("a 1\nwan");
      setImmediate(() => response.end("ted 2\nb 3\nwanted 4"));
    },
    expected: ["wanted 2", "wanted 4"],
  },
  {
    name: "another status",
    answer: (_request, response) => response.writeHead(503).end("wanted 1\n"),
    expected: undefined,
  },
  {
    name: "redirected",
    answer: (_request, response) => response.writeHead(302, { location: "/elsewhere" }).end(),
    expected: undefined,
  },
  {
    name: "cut short",
    answer: (_request, response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write("wanted 1\n", () => response.destroy());
    },
    expected: undefined,
  },
  {
    name: "without an end",
    answer: (_request, response) => {
      const chunk = "wanted 1\n".repeat(10_000);
      const more = (): void => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on("drain", more);
      more();
    },
    expected: undefined,
  },
];

test("a line without an end is given up long before the page is too large", async () => {
  const address = `${await freeAddressBlock()}.1`;
  let writtenBytes = 0;
  const server = createServer((_request, response) => {
    const more = (): void => {
      let takes = true;
      while (takes && !response.destroyed && writtenBytes < 30 * 1024 * 1024) {
        writtenBytes += 65_536;
        takes = response.write("a".repeat(65_536));
      }
      if (takes) response.end();
    };
    response.on("drain", more);
    more();
  }).listen(15_020, address);
  await once(server, "listening");
  try {
    assert.equal(await readProxyMetrics(address, () => false, believed), undefined);
    assert.ok(writtenBytes < 20 * 1024 * 1024, String(writtenBytes));
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

for (const { name, answer, expected } of rows) {
  test(name, async () => {
    const address = `${await freeAddressBlock()}.1`;
    const server = createServer(answer).listen(15_020, address);
    await once(server, "listening");
    try {
      assert.deepEqual(await readProxyMetrics(address, (line) => line.startsWith("wanted"), believed), expected);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
}

test("nobody", async () => {
  const address = `${await freeAddressBlock()}.1`;
  assert.equal(await readProxyMetrics(address, () => true, believed), undefined);
});

test("a stranger is not asked, and is named", async () => {
  const address = `${await freeAddressBlock()}.1`;
  let asked = 0;
  const server = createServer((_request, response) => response.end("wanted 1\n"));
  server.on("connection", () => (asked += 1));
  server.listen(15_020, address);
  await once(server, "listening");
  try {
    const holder = new RegExp(`^${address}:15020 is held by process ${process.pid} \\(`);
    const metrics = await readProxyMetrics(address, () => true, new AgentSockets());
    assert.ok(metrics !== undefined && "stranger" in metrics);
    assert.match(metrics.stranger, holder);
    assert.equal(asked, 0);
  } finally {
    server.close();
  }
});

test("a stranger who comes between the look and the connection is not believed", async () => {
  const address = `${await freeAddressBlock()}.1`;
  const server = createServer((_request, response) => response.end("wanted 1\n"));
  server.listen(15_020, address);
  await once(server, "listening");
  try {
    let looks = 0;
    const stranger = (): string | undefined => (++looks === 1 ? undefined : "somebody");
    assert.deepEqual(await readProxyMetrics(address, () => true, { stranger }), {
      stranger: `${address}:15020 is held by somebody`,
    });
  } finally {
    server.close();
  }
});
