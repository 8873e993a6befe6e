// The public face of the authorization server: to run it, and to administer its store.
export {
  allClients,
  createClient,
  endPreviousSecret,
  removeClient,
  replaceClientSecret,
  updateClient,
} from "./admin/clients.ts";
export { parseDurationMs } from "./config/durations.ts";
export type { ClientRules, ClientSettings, CreatedClient, NewClient } from "./admin/clients.ts";
export { allUsers, changeUserPassword, createUser, removeUser, updateUserSettings } from "./admin/users.ts";
export type { NewUser, UserSettings } from "./admin/users.ts";
export type { AdminResult } from "./admin/result.ts";
export { listAuditEvents } from "./audit/audit-log.ts";
export type { StoredAuditEvent } from "./audit/audit-log.ts";
export { keySetLifeMs, loadConfig } from "./config/config.ts";
export type { Config, ConfigResult, ConfigSources } from "./config/config.ts";
export { keyList, rotateKeys } from "./admin/keys.ts";
export type { KeyListing } from "./admin/keys.ts";
export { endUserSessions, grantsOf, revokeGrants, sessionsOf } from "./admin/grants.ts";
export type { GrantListing, SessionListing } from "./admin/grants.ts";
export { passwordHasher } from "./crypto/passwords.ts";
export { describeBrowser } from "./pages/account-page.ts";
export { readIssuer } from "./store/facts.ts";
export { openServer } from "./start.ts";
export type { RunningServer, ServerOptions } from "./start.ts";
export { openDatabase } from "./store/open.ts";
export type { Client } from "./store/clients.ts";
export type { Database } from "./store/database.ts";
export type { User } from "./store/users.ts";
