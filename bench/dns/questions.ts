// The questions of the bench: of names that the table has, and of others.
export const serviceCount = 1000;

export type QuestionKind = "mesh" | "passed on";

/** Recursion desired, one question. */
const header = Buffer.from("000001000001000000000000", "hex");
/** The root, type A, class IN. */
const questionEnd = Buffer.from("0000010001", "hex");

/** One of each name, with number 0. */
export function questions(kind: QuestionKind): readonly Buffer[] {
  const domain = kind === "mesh" ? "shop.svc.cluster.local" : "example.com";
  return Array.from({ length: serviceCount }, (_, index) => {
    const labels = `service-${index}.${domain}`.split(".").map((label) => String.fromCharCode(label.length) + label);
    return Buffer.concat([header, Buffer.from(labels.join(""), "latin1"), questionEnd]);
  });
}

/** An answer with one address, as a name server of the machine gives it. */
export function addressAnswer(query: Buffer): Buffer {
  const record = Buffer.from("c00c000100010000001e0004c0000201", "hex");
  const answer = Buffer.concat([query, record]);
  answer.writeUInt16BE(0x81_80, 2);
  answer.writeUInt16BE(1, 6);
  return answer;
}
