// What a pod's programs see of the machine's files: two mount namespaces, one of the apps' and one of the proxy's,
// whose user is nobody's on the machine. State of the mesh is in neither, but for what the pod itself was given.
import { existsSync, realpathSync, statSync } from "node:fs";
import path from "node:path";
import { keep } from "./start-keeper.ts";

/** A folder that is replaced by an empty one, and what is in that. */
interface Replaced {
  readonly folder: string;
  readonly options: string;
  /** Shown at its own place. */
  readonly shown: readonly string[];
  /** Made there, for that user alone. */
  readonly made?: { readonly folder: string; readonly user: number };
}

export interface ViewPlan {
  /** Files of the pod's own by the machine's that they are mounted over. */
  readonly files: readonly (readonly [own: string, over: string])[];
  readonly replaced: readonly Replaced[];
}

/** Of the pod's root, who may write there what he likes. */
const small = "nosuid,nodev,size=1m";
/** What a proxy was told last lies there. */
const large = "nosuid,nodev,size=256m";

/**
 * Run in the mount namespace: makes all of it in the order of its arguments, says so, and waits until its input ends.
 * As the first process of a pod it becomes the parent of orphans; it ignores how they end, so that none of them stays.
 */
export const viewScript = `
umask 022
mount=$1; shift
while [ $# -gt 0 ]; do
  case $1 in
    processes) "$mount" -n -t proc -o nosuid,nodev,noexec proc /proc || exit 1; shift ;;
    file)
      [ -e "$3" ] || { echo "there is no file $3 to mount over" >&2; exit 1; }
      "$mount" -n --bind "$2" "$3" || exit 1; shift 3 ;;
    empty) mkdir -p "$2" && "$mount" -n -t tmpfs -o "$3" tulle "$2" || exit 1; shift 3 ;;
    show) mkdir -p "$3" && "$mount" -n --rbind "$2" "$3" || exit 1; shift 3 ;;
    make) mkdir -p "$2" && chown "$3:$3" "$2" && chmod 700 "$2" || exit 1; shift 3 ;;
    move) "$mount" -n --move "$2" "$3" || exit 1; shift 3 ;;
  esac
done
echo made
${keep}
`;

/** Arguments of the script; `stage` is a folder in which it may make others. */
export function viewSteps({ files, replaced }: ViewPlan, stage: string): readonly string[] {
  return [
    "processes",
    ...files.flatMap(([own, over]) => ["file", own, over]),
    ...replaced.flatMap(({ folder, options, shown, made }, index) => {
      const staged = path.join(stage, String(index));
      const at = (place: string): string => path.join(staged, path.relative(folder, place));
      const making = made === undefined ? [] : ["make", at(made.folder), String(made.user)];
      const showing = shown.flatMap((place) => ["show", place, at(place)]);
      return ["empty", staged, options, ...showing, ...making, "move", staged, folder];
    }),
  ];
}

export interface MeshFolders {
  /** Of the instance: nothing of it is a pod's but what it is given. */
  readonly state: string;
  /** Others of this user's, and where the sockets lie that command the mesh. */
  readonly hidden: readonly string[];
  /** Where apps keep compiled code, in the state folder. */
  readonly appCompileCache: string;
  /** The mesh's roots, for everybody. */
  readonly roots: string;
  /** What proxies are made of. */
  readonly installation: readonly string[];
}

export function appReplaced({ state, hidden, appCompileCache }: MeshFolders): readonly Replaced[] {
  return [
    { folder: state, options: `${small},mode=0755`, shown: [appCompileCache] },
    ...outermost(hidden.filter((folder) => existsSync(folder)))
      .filter((folder) => !isWithin(folder, state))
      .map((folder) => ({ folder, options: `${small},mode=0755`, shown: [] })),
  ];
}

/**
 * The proxy's user may not enter folders that are another user's alone. Each of them that leads to something it needs
 * is replaced by one that holds nothing else. What it leaves in /tmp goes with the pod.
 */
export function proxyReplaced(
  { roots, installation }: MeshFolders,
  given: string,
  own: { readonly folder: string; readonly user: number },
): readonly Replaced[] {
  const needed = [roots, given, ...installation];
  const closed = [...needed, own.folder].map((place) => firstClosed(place)).filter((place) => place !== undefined);
  return outermost([temporary, ...closed]).map((folder) => ({
    folder,
    options: `${large},mode=${folder === temporary ? "1777" : "0755"}`,
    shown: outermost(needed.filter((place) => isWithin(place, folder))),
    ...(isWithin(own.folder, folder) ? { made: own } : {}),
  }));
}

const temporary = "/tmp";

/** The first folder on the way to a place that others than its owner may not pass. */
export function firstClosed(place: string): string | undefined {
  const parent = path.dirname(place);
  const before = parent === place ? undefined : firstClosed(parent);
  if (before !== undefined) return before;
  const stats = statSync(place, { throwIfNoEntry: false });
  return stats !== undefined && (stats.mode & 0o001) === 0 ? place : undefined;
}

/** Of a program that others than its owner run: what they may not read. */
export function firstUnreadable(folders: readonly string[], files: readonly string[]): string | undefined {
  return (
    folders.find((folder) => (statSync(folder).mode & 0o005) !== 0o005) ??
    files.find((file) => (statSync(file).mode & 0o004) === 0)
  );
}

/** Without those that lie in others of them. */
function outermost(places: readonly string[]): readonly string[] {
  const all = [...new Set(places)];
  return all.filter((place) => !all.some((other) => other !== place && isWithin(place, other)));
}

function isWithin(place: string, folder: string): boolean {
  const relative = path.relative(folder, place);
  return relative === "" || (!relative.startsWith("..") && !path.isAbsolute(relative));
}

/** Folders of the program that proxies are, and of what it may start. */
export function installationFolders([nodePath = "", entryFile = ""]: readonly string[], envoy: string | undefined) {
  const clone = path.resolve(entryFile, "../../../..");
  const libraries = path.join(clone, "node_modules");
  return [
    path.resolve(nodePath, "../.."),
    clone,
    ...(existsSync(libraries) ? [realpathSync(libraries)] : []),
    ...(envoy === undefined ? [] : [path.dirname(realpathSync(envoy))]),
  ];
}
