// Writes log lines to a descriptor so that a disk which is full, or a reader that has gone, never ends the process:
// what cannot be written is lost, and how much was lost is said as soon as something can be written again.
import { writeSync } from "node:fs";

type WriteSync = (descriptor: number, text: string) => number;

/**
 * A line is written before the call returns, as whoever reads a log after a crash expects. (`process.stderr` of a file
 * throws an error event when the disk is full, which ends the process, and never writes again.)
 */
export function lineWriter(descriptor: number, write: WriteSync = writeSync): (line: string) => void {
  let lostLines = 0;
  const tryToWrite = (text: string): boolean => {
    try {
      write(descriptor, text);
      return true;
    } catch (error) {
      // A pipe whose reader is slow: the line is worth a second try, and no more.
      return (error as NodeJS.ErrnoException).code === "EAGAIN" && isWritten(descriptor, text, write);
    }
  };
  return (line) => {
    if (lostLines > 0 && !tryToWrite(`(${lostLines} lines could not be written here)\n`)) {
      lostLines += 1;
      return;
    }
    lostLines = tryToWrite(line) ? 0 : 1;
  };
}

function isWritten(descriptor: number, text: string, write: WriteSync): boolean {
  try {
    write(descriptor, text);
    return true;
  } catch {
    return false;
  }
}
