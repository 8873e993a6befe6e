// The type URL of a message of Envoy's extensions.

/** `name` is the message's without `envoy.extensions.`. */
export const typeUrl = (name: string): string => `type.googleapis.com/envoy.extensions.${name}`;
