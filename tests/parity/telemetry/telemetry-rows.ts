// All cases of behaviour of telemetry, by name.
import { providerRows, settingRows } from "./mesh-rows.ts";
import { logRows, metricRows, traceRows } from "./resource-rows.ts";
import type { TelemetryRow } from "./telemetry-row.ts";

export const telemetryRows: Readonly<Record<string, TelemetryRow>> = {
  ...traceRows,
  ...logRows,
  ...metricRows,
  ...settingRows,
  ...providerRows,
};
