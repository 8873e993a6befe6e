// What programs ask for, and what it is.

export const names: Readonly<Record<string, readonly string[]>> = {
  // With a search domain behind it.
  catalog: ["10.96.0.7"],
  "catalog.shop.svc.cluster.local": ["10.96.0.7"],
  "CataLog.Shop": ["10.96.0.7"],
  // Without an address of IPv4, and with both.
  six: ["fd00::6"],
  "dual.people": ["10.96.0.8", "fd00::8"],
  // Too many for a datagram.
  "many.shop": Array.from({ length: 60 }, (_, index) => `10.244.0.${index + 1}`),
  "api.example.com": ["240.240.0.1"],
  // Of another name server.
  "www.foreign.example": ["192.0.2.1"],
  nothing: ["none"],
  "nothing.shop.svc.cluster.local": ["none"],
};
