// A back end that does by its path what none should: it hangs, breaks off at the worst moment, answers too much, too
// little or nonsense. `/ok` behaves. A query tells requests of one path apart.
import net from "node:net";

export interface BadBackEnd {
  readonly port: number;
  /** Body bytes that the endless answers have got rid of, by target. */
  readonly written: ReadonlyMap<string, number>;
  /** Targets that have been asked for. */
  readonly seen: ReadonlySet<string>;
  /** Targets whose connection has closed on both sides. */
  readonly closed: ReadonlySet<string>;
  close(): void;
}

const answer = (body: string, ...fields: string[]): string =>
  ["HTTP/1.1 200 OK", `content-length: ${body.length}`, ...fields, "", body].join("\r\n");
const head = (...fields: string[]): string => ["HTTP/1.1 200 OK", ...fields, "", ""].join("\r\n");
const ok = answer("ok");
const upgraded = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n";
const tooManyFields = Array.from({ length: 200 }, (_, index) => `x-${index}: 1`);

/** What is sent, and what becomes of the connection then. */
interface Act {
  readonly bytes?: string;
  readonly ending?: "keep" | "end" | "reset";
}

const acts: Readonly<Record<string, Act>> = {
  "/ok": { bytes: ok },
  "/hang": {},
  // Of an authorizer.
  "/authorize/ok": { bytes: ok },
  "/authorize/denied": { bytes: "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno" },
  "/close-before-answer": { ending: "end" },
  "/reset-before-answer": { ending: "reset" },
  "/close-in-head": { bytes: "HTTP/1.1 200 OK\r\ncontent-le", ending: "end" },
  "/close-in-body": { bytes: `${head("content-length: 10")}abc`, ending: "end" },
  "/reset-in-body": { bytes: `${head("content-length: 10")}abc`, ending: "reset" },
  "/close-in-chunk": { bytes: `${head("transfer-encoding: chunked")}5\r\nab`, ending: "end" },
  "/close-before-last-chunk": { bytes: `${head("transfer-encoding: chunked")}2\r\nab\r\n`, ending: "end" },
  "/close-after-answer": { bytes: ok, ending: "end" },
  "/length-too-short": { bytes: `${head("content-length: 2")}okEXTRA` },
  "/length-too-long": { bytes: `${head("content-length: 10")}ok` },
  "/two-equal-lengths": { bytes: `${head("content-length: 2", "content-length: 2")}ok` },
  "/two-lengths": { bytes: `${head("content-length: 2", "content-length: 3")}ok` },
  "/length-list": { bytes: `${head("content-length: 2, 2")}ok` },
  "/length-no-number": { bytes: `${head("content-length: +2")}ok` },
  "/length-and-chunked": { bytes: `${head("content-length: 2", "transfer-encoding: chunked")}2\r\nok\r\n0\r\n\r\n` },
  "/unknown-coding": { bytes: `${head("transfer-encoding: gzip, chunked")}2\r\nok\r\n0\r\n\r\n` },
  "/bad-chunk-size": { bytes: `${head("transfer-encoding: chunked")}zz\r\nok\r\n0\r\n\r\n` },
  "/chunk-size-of-zeros": { bytes: `${head("transfer-encoding: chunked")}${"0".repeat(100_000)}` },
  "/no-status-line": { bytes: "hello, this is no HTTP\r\n\r\n" },
  "/bad-status": { bytes: "HTTP/1.1 2x0 OK\r\ncontent-length: 0\r\n\r\n" },
  "/null-in-head": { bytes: `${head("x-a: b\0c", "content-length: 2")}ok` },
  "/space-in-name": { bytes: `${head("x-a : b", "content-length: 2")}ok` },
  "/too-large-head": { bytes: `${head(`x-a: ${"b".repeat(120_000)}`, "content-length: 2")}ok` },
  "/too-many-fields": { bytes: `${head(...tooManyFields, "content-length: 2")}ok` },
  "/http10": { bytes: "HTTP/1.0 200 OK\r\n\r\nuntil the end", ending: "end" },
  "/http10-reset": { bytes: "HTTP/1.0 200 OK\r\n\r\nuntil the end", ending: "reset" },
  "/http10-kept": { bytes: "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok" },
  "/http10-chunked": { bytes: "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n" },
  "/answer-early": { bytes: answer("no", "connection: close"), ending: "end" },
  "/upgraded": { bytes: `${upgraded}hi` },
  "/upgraded-end": { bytes: `${upgraded}hi`, ending: "end" },
  "/upgraded-reset": { bytes: `${upgraded}hi`, ending: "reset" },
  "/upgrade-refused": { bytes: "HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\nno" },
  "/unasked-101": { bytes: "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n" },
};

export async function startBadBackEnd(): Promise<BadBackEnd> {
  const sockets = new Set<net.Socket>();
  const written = new Map<string, number>();
  const seen = new Set<string>();
  const closed = new Set<string>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    const targets: string[] = [];
    socket.on("error", () => undefined);
    socket.on("close", () => {
      sockets.delete(socket);
      for (const target of targets) closed.add(target);
    });
    let requests = 0;
    let received = "";
    socket.on("data", (data) => {
      received += data.toString("latin1");
      if (!received.includes("\r\n\r\n")) return;
      const target = received.split(" ", 2)[1] ?? "";
      received = "";
      requests += 1;
      seen.add(target);
      targets.push(target);
      const path = target.split("?", 1)[0]!;
      if (path === "/endless") writeForEver(socket, target);
      else if (path === "/close-at-second" && requests > 1) socket.destroy();
      else perform(socket, acts[path === "/close-at-second" ? "/ok" : path] ?? {});
    });
  });
  const writeForEver = (socket: net.Socket, target: string): void => {
    const body = Buffer.alloc(64 * 1024, "x");
    const chunk = Buffer.concat([Buffer.from("10000\r\n"), body, Buffer.from("\r\n")]);
    socket.write(head("transfer-encoding: chunked"));
    const write = (): void => {
      let more = true;
      while (more && !socket.destroyed) {
        more = socket.write(chunk);
        written.set(target, (written.get(target) ?? 0) + body.length);
      }
    };
    socket.on("drain", write);
    write();
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as net.AddressInfo).port,
    written,
    seen,
    closed,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function perform(socket: net.Socket, { bytes, ending = "keep" }: Act): void {
  if (bytes !== undefined) socket.write(Buffer.from(bytes, "latin1"));
  if (ending === "end") socket.end();
  else if (ending === "reset") {
    // What was written has to arrive first, or the reset would overtake it.
    setImmediate(() => socket.resetAndDestroy());
  }
}
