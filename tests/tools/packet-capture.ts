// What really went over the loopback interface: tcpdump's packets, put together to the byte streams of TCP connections.
// Needs root.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { debianTool } from "./debian-tool.ts";
import { startProcess, type StartedProcess } from "./processes.ts";
import { ToolUnavailable } from "./tool-unavailable.ts";

/** One connection whose first packet was seen. */
export interface CapturedConnection {
  /** `address:port` of the side that opened it. */
  readonly client: string;
  readonly server: string;
  /** All bytes from the client, in order; undefined when some were not seen. */
  readonly fromClient: Buffer | undefined;
  readonly fromServer: Buffer | undefined;
}

export class PacketCapture implements AsyncDisposable {
  readonly #tcpdump: StartedProcess;
  readonly #folder: string;

  private constructor(tcpdump: StartedProcess, folder: string) {
    this.#tcpdump = tcpdump;
    this.#folder = folder;
  }

  /** Begins to listen; `filter` is what tcpdump calls an expression. @throws {ToolUnavailable} without root */
  static async start(filter: string): Promise<PacketCapture> {
    const tcpdump = await debianTool("tcpdump");
    if (process.getuid?.() !== 0) {
      throw new ToolUnavailable("root", "only root may capture packets; run this test as root");
    }
    const folder = await mkdtemp(path.join(tmpdir(), "tulle-capture-"));
    // -Z: it would give up root and then not be allowed into the folder. -B: 16 MiB, so that a busy machine loses
    // nothing.
    const args = ["-Z", "root", "-i", "lo", "-n", "-U", "-B", "16384", "-w", path.join(folder, "lo.pcap"), filter];
    const started = await startProcess(tcpdump, args);
    await started.waitForOutput(/listening on lo/);
    return new PacketCapture(started, folder);
  }

  /** What has been seen up to about a second ago. */
  async connections(): Promise<readonly CapturedConnection[]> {
    return connectionsIn(await readFile(path.join(this.#folder, "lo.pcap")));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tcpdump.stop({ signal: "SIGINT" });
    await rm(this.#folder, { recursive: true, force: true });
  }
}

interface Segment {
  readonly from: string;
  readonly to: string;
  readonly sequence: number;
  readonly isSyn: boolean;
  readonly isAck: boolean;
  readonly payload: Buffer;
}

/** One direction: where its sequence numbers begin, and the payload by its place in the stream. */
class Direction {
  readonly #first: number;
  readonly #parts = new Map<number, Buffer>();

  constructor(syn: number) {
    this.#first = (syn + 1) >>> 0;
  }

  add({ sequence, payload }: Segment): void {
    if (payload.length === 0) return;
    const offset = (sequence - this.#first) >>> 0;
    // Of a repeated segment the longer one says more.
    if ((this.#parts.get(offset)?.length ?? 0) < payload.length) this.#parts.set(offset, payload);
  }

  bytes(): Buffer | undefined {
    let end = 0;
    const whole: Buffer[] = [];
    for (const [offset, part] of [...this.#parts].sort(([a], [b]) => a - b)) {
      if (offset > end) return undefined;
      const fresh = part.subarray(end - offset);
      whole.push(fresh);
      end += fresh.length;
    }
    return Buffer.concat(whole);
  }
}

/** Of a pcap file in this machine's byte order. A half-written last packet is left out. */
function connectionsIn(pcap: Buffer): readonly CapturedConnection[] {
  const open = new Map<string, { client: string; server: string; up: Direction; down: Direction | undefined }>();
  const all: { client: string; server: string; up: Direction; down: Direction | undefined }[] = [];
  for (const segment of segmentsIn(pcap)) {
    const { from, to, isSyn, isAck, sequence } = segment;
    if (isSyn && !isAck) {
      const connection = { client: from, server: to, up: new Direction(sequence), down: undefined };
      open.set(`${from} ${to}`, connection);
      all.push(connection);
      continue;
    }
    open.get(`${from} ${to}`)?.up.add(segment);
    const answered = open.get(`${to} ${from}`);
    if (answered === undefined) continue;
    if (isSyn) answered.down ??= new Direction(sequence);
    answered.down?.add(segment);
  }
  return all.map(({ client, server, up, down }) => ({
    client,
    server,
    fromClient: up.bytes(),
    fromServer: down === undefined ? undefined : down.bytes(),
  }));
}

const fileHeaderBytes = 24;
const packetHeaderBytes = 16;
const ethernetHeaderBytes = 14;

function* segmentsIn(pcap: Buffer): Generator<Segment> {
  let at = fileHeaderBytes;
  while (at + packetHeaderBytes <= pcap.length) {
    const length = pcap.readUInt32LE(at + 8);
    at += packetHeaderBytes;
    if (at + length > pcap.length) return;
    const segment = segmentOf(pcap.subarray(at + ethernetHeaderBytes, at + length));
    if (segment !== undefined) yield segment;
    at += length;
  }
}

/** RFC 791 §3.1 and RFC 9293 §3.1; undefined for what is not TCP over IPv4. */
function segmentOf(ip: Buffer): Segment | undefined {
  if (ip.length < 20 || ip[0]! >> 4 !== 4 || ip[9] !== 6) return undefined;
  const ipHeaderBytes = (ip[0]! & 0x0f) * 4;
  const totalBytes = ip.readUInt16BE(2);
  const tcp = ip.subarray(ipHeaderBytes, totalBytes === 0 ? ip.length : totalBytes);
  const address = (offset: number, port: number): string => `${[...ip.subarray(offset, offset + 4)].join(".")}:${port}`;
  const flags = tcp[13]!;
  return {
    from: address(12, tcp.readUInt16BE(0)),
    to: address(16, tcp.readUInt16BE(2)),
    sequence: tcp.readUInt32BE(4),
    isSyn: (flags & 0x02) !== 0,
    isAck: (flags & 0x10) !== 0,
    payload: tcp.subarray((tcp[12]! >> 4) * 4),
  };
}
