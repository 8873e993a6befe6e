// `tulle auth`: administration of the authorization server, on its store. One file a sub-command.
import type { Command } from "commander";
import type { CommandContext } from "../../command/command-module.ts";
import { addExamples } from "../../command/command-options.ts";
import { registerAudit } from "./auth-audit.ts";
import { registerClient } from "./auth-client.ts";
import { registerGrant } from "./auth-grant.ts";
import { registerKey } from "./auth-key.ts";
import { registerSession } from "./auth-session.ts";
import { registerUser } from "./auth-user.ts";

export function register(command: Command, context: CommandContext): void {
  const add = (name: string, summary: string): Command => command.command(name).description(summary);
  registerClient(add("client", "The applications that may ask for tokens."), context);
  registerUser(add("user", "The people who sign in."), context);
  registerGrant(add("grant", "What users have allowed applications."), context);
  registerSession(add("session", "Where users are signed in."), context);
  registerKey(add("key", "The keys that sign tokens."), context);
  registerAudit(add("audit", "Why requests were refused, and what was changed."), context);
  addExamples(command, [
    ["tulle auth client create --id web --redirect-uri https://app.example/callback", "register an application"],
    ["tulle auth grant list --user ann", "what a user has allowed"],
  ]);
}
