// The entry `@tulle/xds/json`: protobuf JSON and YAML, strict when read and stable when written.
export * from "./any-registry.ts";
export * from "./from-json.ts";
export * from "./from-yaml.ts";
export * from "./nearest-name.ts";
export * from "./to-json.ts";
