// The process that waits for this one, where the pinned Node was not the one that was started: by which pipe it is
// known.

/** The launcher's variable: descriptor of a pipe that closes when the launcher is gone. */
export const launcherVariable = "TULLE_LAUNCHER_FD";

let descriptor: number | undefined;

/** Takes it out of the environment: no child is to know of it. */
export function takeLauncher(env: NodeJS.ProcessEnv): number | undefined {
  const text = env[launcherVariable];
  delete env[launcherVariable];
  descriptor = text === undefined ? undefined : Number(text);
  return descriptor;
}

/** What a program needs that takes this one's place, as descriptors by their variables: its launcher is the same. */
export function launcherDescriptors(): Readonly<Record<string, number>> {
  return descriptor === undefined ? {} : { [launcherVariable]: descriptor };
}
