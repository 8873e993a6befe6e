// What capture is made by, nft(8) and ip(8), with the libraries that they have beside the lowest layer's.
import { debianFolder } from "../../tests/tools/debian-folder.ts";
import { copyMatching } from "./system-layer.ts";

/** All that the two need, since only what is named is sure to be fetched. */
const packages = [
  "nftables",
  "libnftables1",
  "libnftnl11",
  "libxtables12",
  "libjansson4",
  "libgmp10",
  "libedit2",
  "libtinfo6",
  "libbsd0",
  "libmd0",
  "libmnl0",
  "iproute2",
  "libbpf1",
  "libelf1",
  "libcap2",
  "zlib1g",
] as const;

const libraries =
  "libnftables,libnftnl,libxtables,libjansson,libgmp,libedit,libtinfo,libbsd,libmd,libmnl,libbpf,libelf,libelf-*,libcap,libz";
const wanted = [
  "{,usr/}sbin/nft",
  "{,usr/}{bin,sbin}/ip",
  `{,usr/}lib/*-linux-gnu/{${libraries}}.so.*`,
  "{,usr/}lib/*-linux-gnu/libelf-*.so",
] as const;

export async function makeNetworkToolsLayer(into: string): Promise<void> {
  const { root } = await debianFolder(packages);
  copyMatching(root, into, wanted);
}
