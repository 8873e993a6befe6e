// What stands behind the measured proxies, on the load's core: answers from memory.
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import http2 from "node:http2";
import path from "node:path";
import { debianTool } from "../../tests/tools/debian-tool.ts";
import { startProcess, type StartedProcess } from "../../tests/tools/processes.ts";
import { onCore } from "../measure/on-core.ts";
import { nginxPreamble, writeConfiguration } from "./contestants.ts";
import type { FrameAnswer } from "./frame-backend.ts";
import { answerBytes, requestBody, requestHeaders, requestPath, type Work } from "./work.ts";

const frameProgram = path.join(import.meta.dirname, "frame-backend.ts");

/** Longer ones nginx has as a file. */
const longestInConfiguration = 4096;

/** `address` is `ip:port`. Resolves once it listens, or soon before. */
export async function startBackend(work: Work, folder: string, address: string, core: number): Promise<StartedProcess> {
  // nginx knows no trailers here, and reads no request's body before it answers.
  const isPlain = !work.isGrpc && work.requestBytes === 0 && work.answerFrames === 1;
  return work.protocol === "HTTP/1.1" || isPlain
    ? startNginxBackend(work, folder, address, core)
    : startFrameBackend(work, address, core);
}

async function startNginxBackend(work: Work, folder: string, address: string, core: number): Promise<StartedProcess> {
  const answer = "x".repeat(answerBytes(work));
  const isFile = answer.length > longestInConfiguration;
  if (isFile) await writeFile(path.join(folder, "answer"), answer);
  const configuration = await writeConfiguration(folder, "backend.conf", [
    // Its workers read a file of a folder that is ours alone; where we are not root, they run as we do.
    "user root root;",
    ...nginxPreamble(folder),
    "http {",
    "  access_log off;",
    "  keepalive_requests 1000000000;",
    "  default_type text/plain;",
    "  sendfile on;",
    "  open_file_cache max=1;",
    "  server {",
    `    listen ${address}${work.protocol === "HTTP/2" ? " http2" : ""};`,
    `    root ${folder};`,
    isFile ? "    location / { try_files /answer =404; }" : `    location / { return 200 "${answer}"; }`,
    "  }",
    "}",
  ]);
  return startProcess(...onCore(core, await debianTool("nginx"), ["-c", configuration]), { name: "back end" });
}

function startFrameBackend(work: Work, address: string, core: number): Promise<StartedProcess> {
  const { answerFrames: frames, answerFrameBytes: frameBytes, isGrpc } = work;
  const answer: FrameAnswer = { frames, frameBytes, isGrpc };
  const args = [frameProgram, address, JSON.stringify(answer)];
  return startProcess(...onCore(core, process.execPath, args), { name: "back end" });
}

/** One request; false without the whole good answer. */
export async function isAnswered(work: Work, origin: string): Promise<boolean> {
  const bytes = work.protocol === "HTTP/2" ? await http2AnswerBytes(work, origin) : await http1AnswerBytes(origin);
  return bytes === answerBytes(work);
}

/** -1 without a good answer, as below. */
async function http1AnswerBytes(origin: string): Promise<number> {
  const response = await fetch(`${origin}${requestPath}`);
  const { byteLength } = await response.arrayBuffer();
  return response.status === 200 ? byteLength : -1;
}

async function http2AnswerBytes(work: Work, origin: string): Promise<number> {
  const session = http2.connect(origin);
  // The stream's own error says as much.
  session.on("error", () => undefined);
  try {
    const fields = requestHeaders(work).map((line) => line.split(": ") as [string, string]);
    const method = work.requestBytes === 0 ? "GET" : "POST";
    const stream = session.request({ ":method": method, ":path": requestPath, ...Object.fromEntries(fields) });
    if (work.requestBytes > 0) stream.end(requestBody(work));
    let status: string | undefined = work.isGrpc ? undefined : "0";
    stream.on("trailers", (trailers) => (status = String(trailers["grpc-status"])));
    const [headers] = (await once(stream, "response")) as [http2.IncomingHttpStatusHeader];
    let bytes = 0;
    for await (const chunk of stream) bytes += (chunk as Buffer).length;
    return headers[":status"] === 200 && status === "0" ? bytes : -1;
  } finally {
    session.destroy();
  }
}
