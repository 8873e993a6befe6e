// What happened when, one entry a line: the time first, further lines indented.
import { printable } from "@tulle/telemetry";
import { wrapText } from "./wrap-text.ts";

/** `time` is RFC 3339 in UTC, as the control plane writes it. */
export function timedLine(time: string, text: string, columns: number | undefined): string {
  return wrapText(`${time.slice(0, 10)} ${time.slice(11, 19)}Z  ${printable(text)}`, columns, "    ");
}
