// Pins a command to one CPU core, so that the measured program and its load do not take each other's time.

/** The command and its arguments, run by taskset on one core. */
export function onCore(core: number, command: string, args: readonly string[]): readonly [string, readonly string[]] {
  return ["taskset", ["-c", String(core), command, ...args]];
}
