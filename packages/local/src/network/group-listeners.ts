// Where the processes of a group listen, for messages: a program that takes no notice of HOST and PORT is told where it
// is instead.
import { listeningPlaces, listProcesses } from "@tulle/capture";

/**
 * `address:port` of each listening socket of the process group, in the order of the ports. Empty where that cannot be
 * known.
 */
export function groupListeners(groupId: number): readonly string[] {
  return listeningPlaces(listProcesses().flatMap(({ pid, group }) => (group === groupId ? [pid] : [])));
}
