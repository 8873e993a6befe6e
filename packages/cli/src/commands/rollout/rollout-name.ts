// Which Rollout a person names, in any of kubectl's spellings.
import { findKind } from "@tulle/config";
import { CommandFailure, exitCodes } from "../../command/command-failure.ts";
import type { InstanceOption, NamespaceOption } from "../../command/command-module.ts";

/** Of every command about something that has a name in a namespace. */
export interface NamedOptions extends InstanceOption, NamespaceOption {}

/** @throws {CommandFailure} for what is no Rollout, or more than one */
export function rolloutName(words: readonly string[]): string {
  const [first = "", second] = words;
  const [kind, name = ""] = first.includes("/") ? first.split("/", 2) : second === undefined ? ["ro", first] : words;
  if (findKind(kind ?? "") === "Rollout" && name !== "" && words.length <= 2) return name;
  throw new CommandFailure("name one Rollout, and nothing else", {
    hint: "For example: tulle rollout start rollout/catalog -n shop\nA Deployment can be restarted, and its status waited for.",
    exitCode: exitCodes.usage,
  });
}
