// Folders, files and sockets that are one user's alone (`@tulle/identity/own`): an entry of its own, since the command
// line needs no more.
export { NotOwn, ownUid, userName } from "./not-own.ts";
export { isOwnFolder, makeOwnFolder } from "./own-folder.ts";
export { type OwnFile, readOwnFile } from "./own-file.ts";
export { writeSecretFile } from "../secret-file.ts";
export { findSocketPath, makeSocketPath, removeSocketFolder } from "./socket-path.ts";
