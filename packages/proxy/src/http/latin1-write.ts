// Node's own way from latin1 text to bytes, without the checks of `write` on each call, as in latin1-slice.ts.

interface Latin1Buffer {
  latin1Write(text: string, at: number): number;
}

/** Room for the text has to be there. */
export function latin1Write(buffer: Buffer, text: string, at: number): void {
  (buffer as unknown as Latin1Buffer).latin1Write(text, at);
}
