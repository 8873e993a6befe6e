// What really went over an interface: tcpdump's packets, put together to the byte streams of TCP connections. Needs
// root.
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

export interface PacketCaptureOptions {
  readonly networkInterface?: string;
  readonly enter?: readonly string[];
}

export class PacketCapture implements AsyncDisposable {
  readonly #tcpdump: StartedProcess;
  readonly #folder: string;

  private constructor(tcpdump: StartedProcess, folder: string) {
    this.#tcpdump = tcpdump;
    this.#folder = folder;
  }

  /**
   * Begins to listen; `filter` is what tcpdump calls an expression. `enter`: the words before a command that run it in
   * another network. @throws {ToolUnavailable} without root
   */
  static async start(
    filter: string,
    { networkInterface = "lo", enter = [] }: PacketCaptureOptions = {},
  ): Promise<PacketCapture> {
    const tcpdump = await debianTool("tcpdump");
    if (process.getuid?.() !== 0) {
      throw new ToolUnavailable("root", "only root may capture packets; run this test as root");
    }
    const folder = await mkdtemp(path.join(tmpdir(), "tulle-capture-"));
    // -Z: it would give up root and then not be allowed into the folder. -B: 16 MiB, so that a busy machine loses
    // nothing.
    const args = ["-Z", "root", "-i", networkInterface, "-n", "-U", "-B", "16384", "-w", path.join(folder, "packets")];
    const started = await startProcess("env", ["--", ...enter, tcpdump, ...args, filter]);
    await started.waitForOutput(/listening on /);
    return new PacketCapture(started, folder);
  }

  /** What has been seen up to about a second ago. */
  async connections(): Promise<readonly CapturedConnection[]> {
    return connectionsIn(await readFile(path.join(this.#folder, "packets")));
  }

  /** Ends; all that was seen. */
  async end(): Promise<readonly CapturedConnection[]> {
    await this.#tcpdump.stop({ signal: "SIGINT" });
    return this.connections();
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

/** RFC 9293 §3.1; undefined for what is not TCP. */
function segmentOf(ip: Buffer): Segment | undefined {
  const packet = tcpOf(ip);
  if (packet === undefined || packet.tcp.length < 20) return undefined;
  const { from, to, tcp } = packet;
  const flags = tcp[13]!;
  return {
    from: `${from}:${tcp.readUInt16BE(0)}`,
    to: `${to}:${tcp.readUInt16BE(2)}`,
    sequence: tcp.readUInt32BE(4),
    isSyn: (flags & 0x02) !== 0,
    isAck: (flags & 0x10) !== 0,
    payload: tcp.subarray((tcp[12]! >> 4) * 4),
  };
}

interface TcpPacket {
  readonly from: string;
  readonly to: string;
  readonly tcp: Buffer;
}

/**
 * RFC 791 §3.1, RFC 8200 §3 without extension headers. A packet that the kernel has not cut into pieces yet may say
 * that it is of no length.
 */
function tcpOf(ip: Buffer): TcpPacket | undefined {
  const version = ip.length < 20 ? 0 : ip[0]! >> 4;
  if (version === 4 && ip[9] === 6) {
    const address = (offset: number): string => ip.subarray(offset, offset + 4).join(".");
    const totalBytes = ip.readUInt16BE(2);
    const tcp = ip.subarray((ip[0]! & 0x0f) * 4, totalBytes === 0 ? ip.length : totalBytes);
    return { from: address(12), to: address(16), tcp };
  }
  if (version === 6 && ip.length >= 40 && ip[6] === 6) {
    const address = (offset: number): string => ipv6Text(ip.subarray(offset, offset + 16));
    const payloadBytes = ip.readUInt16BE(4);
    const tcp = ip.subarray(40, payloadBytes === 0 ? ip.length : 40 + payloadBytes);
    return { from: address(8), to: address(24), tcp };
  }
  return undefined;
}

/** In brackets, in the short form of RFC 5952, which the URL standard's parser writes. */
function ipv6Text(bytes: Buffer): string {
  const groups = bytes.toString("hex").match(/.{4}/g) ?? [];
  return new URL(`http://[${groups.join(":")}]`).hostname;
}
