// Asks a name server over UDP, so many questions at a time, for some seconds, and counts the answers with an address.
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { type QuestionKind, questions } from "./questions.ts";

const atATime = 32;
const answerFlag = 0x80;
/** A datagram can be lost: another one is sent in its place. */
const lostAfterMs = 1000;

/** How many were answered. */
export async function loadNameServer(port: number, kind: QuestionKind, seconds: number): Promise<number> {
  const all = questions(kind);
  const endMs = performance.now() + seconds * 1000;
  const clients = await Promise.all(Array.from({ length: atATime }, () => connected(port)));
  const counts = await Promise.all(clients.map((socket, index) => askOn(socket, all, { offset: index, endMs })));
  for (const socket of clients) socket.close();
  return counts.reduce((sum, count) => sum + count, 0);
}

async function connected(port: number): Promise<Socket> {
  const socket = createSocket("udp4");
  socket.connect(port, "127.0.0.1");
  await once(socket, "connect");
  return socket;
}

interface AskOptions {
  readonly offset: number;
  readonly endMs: number;
}

function askOn(socket: Socket, all: readonly Buffer[], { offset, endMs }: AskOptions): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  let answered = 0;
  let number = offset;
  let lost: NodeJS.Timeout;
  const ask = (): void => {
    clearTimeout(lost);
    if (performance.now() >= endMs) {
      resolve(answered);
      return;
    }
    number = (number + atATime) & 0xff_ff;
    const question = all[number % all.length]!;
    question.writeUInt16BE(number, 0);
    socket.send(question);
    lost = setTimeout(ask, lostAfterMs);
  };
  socket.on("message", (answer: Buffer) => {
    if (answer.readUInt16BE(0) !== number) return;
    const isWell = (answer[2]! & answerFlag) !== 0 && (answer[3]! & 0xf) === 0 && answer.readUInt16BE(6) === 1;
    if (!isWell) reject(new Error(`an answer without an address: ${answer.toString("hex")}`));
    answered += 1;
    ask();
  });
  ask();
  return promise;
}
