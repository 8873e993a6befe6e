// The file by which a container runtime knows which plug-ins make a pod's network (a CNI network configuration list),
// with ours at its end. Texts in, texts out.

export const pluginType = "tulle-cni";

/** What our part of the list says. */
export interface PluginSettings {
  readonly socket: string;
  readonly excludeNamespaces: readonly string[];
}

interface NetworkList {
  readonly plugins: readonly Plugin[];
  readonly [field: string]: unknown;
}

interface Plugin {
  readonly type: string;
  readonly [field: string]: unknown;
}

/**
 * The list with our plug-in as the last one; undefined where it is so already. A single plug-in's configuration
 * (`.conf`) becomes a list.
 *
 * @throws {SyntaxError} for what is neither
 */
export function withPlugin(text: string, settings: PluginSettings): string | undefined {
  const list = readList(text);
  const plugin: Plugin = { type: pluginType, ...settings };
  const wanted = { ...list, plugins: [...list.plugins.filter((each) => each.type !== pluginType), plugin] };
  const isSame = JSON.stringify(wanted) === JSON.stringify(list) && "plugins" in (JSON.parse(text) as object);
  return isSame ? undefined : print(wanted);
}

/** The list without it; undefined where it is not there. @throws {SyntaxError} */
export function withoutPlugin(text: string): string | undefined {
  const list = readList(text);
  const plugins = list.plugins.filter((each) => each.type !== pluginType);
  return plugins.length === list.plugins.length ? undefined : print({ ...list, plugins });
}

function print(list: object): string {
  return `${JSON.stringify(list, undefined, 2)}\n`;
}

function readList(text: string): NetworkList {
  const value = JSON.parse(text) as Partial<NetworkList & Plugin> | null;
  if (typeof value !== "object" || value === null) throw new SyntaxError("it is no JSON object");
  const { plugins, type } = value;
  if (plugins === undefined && typeof type === "string") {
    const { cniVersion, name, ...plugin } = value;
    return { cniVersion, name, plugins: [plugin as Plugin] };
  }
  const isList =
    Array.isArray(plugins) &&
    plugins.length > 0 &&
    plugins.every((each: Plugin | null) => typeof each?.type === "string");
  if (!isList) throw new SyntaxError("it has no plugins");
  return value as NetworkList;
}
