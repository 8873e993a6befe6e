// Text that outlives the head it was part of.

/** A part of a head would keep all of it in memory. */
export function ownText(text: string): string {
  return Buffer.from(text, "utf8").toString("utf8");
}
