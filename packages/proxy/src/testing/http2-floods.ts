// Clients that cost more than they pay for, as turns of frames: one table for the codec alone and for a proxy in a
// process of its own. `/` has a back end that answers, `/silent` one that never does, `/none` answers 204 with a large
// head at once.
import { frameFlags, frameTypes } from "../codec/http2/frame.ts";
import type { Http2Stats } from "../codec/http2/http2-stats.ts";
import { emptySettings, frame, plainFields, settingFrame } from "./http2-peer.ts";

const { endStream, endHeaders } = frameFlags;
const { data, headers, priority, rstStream, ping, windowUpdate, continuation } = frameTypes;

export const requestFields = (path: string): Buffer =>
  plainFields([
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "a"],
  ]);
const cancel = Buffer.from([0, 0, 0, 8]);
const one = Buffer.from([0, 0, 0, 1]);
export interface Flood {
  readonly name: string;
  /** The frames of turn `index`, over and over. */
  readonly turn: (index: number) => readonly Buffer[];
  readonly turns: number;
  readonly metric: keyof Http2Stats;
  /** Our answers are not read. */
  readonly readsNothing?: boolean;
}

export const http2Floods: readonly Flood[] = [
  {
    name: "rapid reset (CVE-2023-44487)",
    turn: (index) => [
      frame(headers, endStream | endHeaders, 2 * index + 1, requestFields("/")),
      frame(rstStream, 0, 2 * index + 1, cancel),
    ],
    turns: 3000,
    metric: "inbound_reset_flood",
  },
  {
    name: "resets that our own refusals are (MadeYouReset, CVE-2025-8671)",
    turn: (index) => [
      frame(headers, endHeaders, 2 * index + 1, requestFields("/silent")),
      frame(windowUpdate, 0, 2 * index + 1, Buffer.alloc(4)),
    ],
    turns: 3000,
    metric: "inbound_reset_flood",
  },
  {
    name: "CONTINUATIONs without an end (CVE-2024-27316)",
    turn: (index) => [
      index === 0
        ? frame(headers, 0, 1, requestFields("/"))
        : frame(continuation, 0, 1, plainFields([["x", "y".repeat(100)]])),
    ],
    turns: 20,
    metric: "inbound_continuation_flood",
  },
  {
    name: "a section larger than all of its limits",
    turn: (index) => [
      index === 0
        ? frame(headers, 0, 1, requestFields("/"))
        : frame(continuation, 0, 1, plainFields([["x", "y".repeat(16_000)]])),
    ],
    turns: 9,
    metric: "headersOverflow",
  },
  {
    name: "empty DATA (CVE-2019-9518)",
    turn: (index) => [index === 0 ? frame(headers, endHeaders, 1, requestFields("/silent")) : frame(data, 0, 1)],
    turns: 20,
    metric: "inbound_empty_frames_flood",
  },
  {
    name: "empty DATA of two streams in turns",
    turn: (index) => [
      index < 2
        ? frame(headers, endHeaders, 2 * index + 1, requestFields("/silent"))
        : frame(data, 0, (2 * index + 1) % 4),
    ],
    turns: 20,
    metric: "inbound_empty_frames_flood",
  },
  {
    name: "empty DATA of a stream that is over",
    turn: (index) => [index === 0 ? frame(headers, endHeaders, 1, requestFields("/none")) : frame(data, 0, 1)],
    turns: 3000,
    metric: "inbound_empty_frames_flood",
  },
  {
    name: "PRIORITY (CVE-2019-9513)",
    turn: () => [frame(priority, 0, 3, Buffer.alloc(5))],
    turns: 400,
    metric: "inbound_priority_frames_flood",
  },
  {
    name: "WINDOW_UPDATE for nothing that was sent",
    turn: () => [frame(windowUpdate, 0, 0, one)],
    turns: 400,
    metric: "inbound_window_update_frames_flood",
  },
  {
    name: "SETTINGS that change the windows of all streams",
    turn: (index) => [settingFrame(4, index % 2)],
    turns: 3000,
    metric: "inbound_settings_flood",
  },
  {
    name: "requests whose answers are not read",
    turn: (index) =>
      Array.from({ length: 100 }, (_, at) =>
        frame(headers, endStream | endHeaders, 2 * (100 * index + at) + 1, requestFields("/none")),
      ),
    turns: 3000,
    metric: "outbound_flood",
    readsNothing: true,
  },
  {
    name: "PING whose answers are not read (CVE-2019-9512)",
    turn: () => Array.from({ length: 1000 }, () => frame(ping, 0, 0, Buffer.alloc(8))),
    turns: 3000,
    metric: "outbound_control_flood",
    readsNothing: true,
  },
  {
    name: "SETTINGS whose answers are not read (CVE-2019-9515)",
    turn: () => Array.from({ length: 1000 }, () => emptySettings),
    turns: 3000,
    metric: "outbound_control_flood",
    readsNothing: true,
  },
];
