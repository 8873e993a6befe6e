// `/listeners`: names and bound addresses, as text or JSON (admin.v3.Listeners).
import { ipPortText } from "../http/ip-port-text.ts";
import { type AdminPage, json, text } from "./admin-page.ts";

export function addressJson(ip: string, port: number): unknown {
  return { socket_address: { address: ip, port_value: port } };
}

export const listenersPage: AdminPage = {
  path: "/listeners",
  help: "print listener info",
  parameters: [["format", "File format to use; One of (text, json)"]],
  handle: (query, { owner, listenerHost }) => {
    const bound = listenerHost.boundAddresses();
    const listeners = [...owner.current.listeners.values()].map((listener) => ({
      name: listener.name,
      addresses: bound.get(listener.name) ?? listener.addresses,
    }));
    if (query.get("format") === "json") {
      return json({
        listener_statuses: listeners.map(({ name, addresses: [main, ...additional] }) => ({
          name,
          local_address: main && addressJson(main.ip, main.port),
          ...(additional.length > 0 && {
            additional_local_addresses: additional.map(({ ip, port }) => addressJson(ip, port)),
          }),
        })),
      });
    }
    const lines = listeners.map(
      ({ name, addresses }) => `${name}::${addresses.map(({ ip, port }) => ipPortText(ip, port)).join(",")}\n`,
    );
    return text(lines.join(""));
  },
};
