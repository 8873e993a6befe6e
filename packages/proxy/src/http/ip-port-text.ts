// An address as logs, pages and hosts show it: `ip:port`, with brackets around an IPv6 address.

export function ipPortText(ip: string, port: number): string {
  return ip.includes(":") ? `[${ip}]:${port}` : `${ip}:${port}`;
}
