// How Tulle's programs load their own code: see ARCHITECTURE.md, "What makes it start quickly".
export {
  bundleFolder,
  freshProgram,
  installedProgram,
  manifestName,
  statusesOf,
  type BundleManifest,
} from "./fresh-bundle.ts";
export { quickResolve } from "./quick-resolve.ts";
