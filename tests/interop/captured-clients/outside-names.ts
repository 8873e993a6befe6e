// A name server that is none of the mesh: a name with an address of IPv4, and one with an address of IPv6.
import { createSocket } from "node:dgram";
import { outside } from "./destinations.ts";

const typeA = 1;
const typeAaaa = 28;
const records = [
  { name: outside.four.host, type: typeA, address: Buffer.from(outside.four.address.split(".").map(Number)) },
  { name: outside.six.host, type: typeAaaa, address: Buffer.from("fd880000000000000000000000000909", "hex") },
];

/** RFC 1035 §4.1. */
function answerTo(query: Buffer): Buffer {
  const typeAt = query.indexOf(0, 12) + 1;
  const known = records.filter(({ name }) => query.subarray(12, typeAt).equals(written(name)));
  const found = known.filter(({ type }) => type === query.readUInt16BE(typeAt));
  const parts = found.map(({ type, address }) => {
    const head = Buffer.from("c00c0000000100000001e0000", "hex").subarray(0, 12);
    head.writeUInt16BE(type, 2);
    head.writeUInt32BE(30, 6);
    head.writeUInt16BE(address.length, 10);
    return Buffer.concat([head, address]);
  });
  const answer = Buffer.concat([query.subarray(0, typeAt + 4), ...parts]);
  answer.writeUInt16BE(known.length > 0 ? 0x81_80 : 0x81_83, 2);
  answer.writeUInt16BE(found.length, 6);
  answer.writeUInt32BE(0, 8);
  return answer;
}

function written(name: string): Buffer {
  const labels = name.split(".").map((label) => Buffer.concat([Buffer.of(label.length), Buffer.from(label)]));
  return Buffer.concat([...labels, Buffer.of(0)]);
}

const socket = createSocket("udp4");
socket.on("message", (query, remote) => socket.send(answerTo(query), remote.port, remote.address));
socket.bind(53, outside.four.address, () => process.stdout.write("listens\n"));
