// Where clouds answer a machine, by addresses that are the same on each: whoever asks there for the machine gets its
// credentials. Those of 169.254.0.0/16 are left out: nothing that is link-local is anybody else's.

/** AWS and GCP by IPv6, Azure, Alibaba Cloud, and Oracle Cloud's older one. */
export const metadataServers: readonly string[] = [
  "fd00:ec2::254",
  "fd20:ce::254",
  "168.63.129.16",
  "100.100.100.200",
  "192.0.0.192",
];
