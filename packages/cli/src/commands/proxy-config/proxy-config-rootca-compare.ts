// `tulle proxy-config rootca-compare`: whether two proxies trust the same authorities, and each one the other's
// certificate.
import type { X509Certificate } from "node:crypto";
import type { Command } from "commander";
import { CommandFailure } from "../../command/command-failure.ts";
import type { CommandContext, InstanceOption, OutputOption } from "../../command/command-module.ts";
import { addInstanceOption, addOutputOption } from "../../command/command-options.ts";
import { wrapText } from "../../printing/wrap-text.ts";
import { proxyAdmin } from "../../proxy-admin/proxy-admin.ts";
import { type SecretDump, secretsOf } from "../../proxy-admin/proxy-dump.ts";
import { certificatesIn, serialOf, subjectOf } from "./secret-certificates.ts";

/** What one proxy shows and trusts. */
interface Trust {
  /** `<pod>.<namespace>` */
  readonly id: string;
  /** Leaf first. */
  readonly chain: readonly X509Certificate[];
  readonly roots: readonly X509Certificate[];
}

export interface TrustComparison {
  /** Both trust the same roots. */
  readonly identical: boolean;
  /** Each one's certificate is vouched for by a root of the other. */
  readonly compatible: boolean;
  readonly proxies: readonly {
    readonly proxy: string;
    readonly roots: readonly RootRow[];
    readonly accepted: boolean;
  }[];
}

interface RootRow {
  readonly serialNumber: string;
  readonly subject: string;
  /** The other proxy trusts it too. */
  readonly shared: boolean;
}

export function registerRootcaCompare(command: Command, context: CommandContext): void {
  addOutputOption(addInstanceOption(command))
    .argument("<pod>", "pod, or <pod>.<namespace>, or the start of one")
    .argument("<other-pod>", "the pod that it is compared with");
  command.action(async (name: string, otherName: string, options: InstanceOption & OutputOption) => {
    const [one, other] = await Promise.all([name, otherName].map((each) => trustOf(context, each, options)));
    const comparison = compareTrust(one!, other!);
    await context.printData(comparison, options.output, () => comparisonText(comparison, context.columns));
    if (!comparison.compatible) {
      throw new CommandFailure(`${one!.id} and ${other!.id} do not take each other's certificates`, {
        hint: "`tulle ca show` tells the mesh's roots. A proxy that lacks one has not been reached by its agent: look at its log.",
      });
    }
  });
}

async function trustOf(context: CommandContext, name: string, options: InstanceOption): Promise<Trust> {
  const admin = await proxyAdmin(context, name, options);
  const trust = readTrust(admin.id, await secretsOf(admin));
  if (trust.roots.length > 0) return trust;
  throw new CommandFailure(`${admin.id} trusts no authority: it has no ROOTCA`, {
    hint: "Proxies get it where the control plane is a certificate authority (`tulle up`, or --xds-tls).",
  });
}

export function readTrust(id: string, secrets: readonly SecretDump[]): Trust {
  const named = (name: string): SecretDump["secret"] =>
    secrets.find((each) => each.name === name && each.state === "ACTIVE")?.secret;
  return {
    id,
    chain: certificatesIn(named("default")?.tls_certificate?.certificate_chain),
    roots: certificatesIn(named("ROOTCA")?.validation_context?.trusted_ca),
  };
}

export function compareTrust(one: Trust, other: Trust): TrustComparison {
  const side = (own: Trust, theirs: Trust): TrustComparison["proxies"][number] => ({
    proxy: own.id,
    roots: own.roots.map((root) => ({
      serialNumber: serialOf(root),
      subject: subjectOf(root),
      shared: theirs.roots.some((each) => each.fingerprint256 === root.fingerprint256),
    })),
    accepted: isVouchedFor(own.chain, theirs.roots),
  });
  const proxies = [side(one, other), side(other, one)];
  return {
    identical: proxies.every(({ roots }) => roots.every(({ shared }) => shared)),
    compatible: proxies.every(({ accepted }) => accepted),
    proxies,
  };
}

/** Signatures and names from the leaf up to one of `roots`; times are what `proxy-config secret` tells of. */
function isVouchedFor([leaf, ...others]: readonly X509Certificate[], roots: readonly X509Certificate[]): boolean {
  if (leaf === undefined) return false;
  const issued = (issuer: X509Certificate): boolean => leaf.checkIssued(issuer) && leaf.verify(issuer.publicKey);
  if (roots.some(issued)) return true;
  const next = others.findIndex(issued);
  return next >= 0 && isVouchedFor(others.slice(next), roots);
}

export function comparisonText(
  { identical, compatible, proxies }: TrustComparison,
  columns: number | undefined,
): string {
  const names = proxies.map(({ proxy }) => proxy).join(" and ");
  const count = proxies[0]!.roots.length;
  if (identical && compatible) {
    const roots = count === 1 ? "the same root" : `the same ${count} roots`;
    return `${wrapText(`${names} trust ${roots}, and each one the other's certificate.`, columns)}\n`;
  }
  const opening = identical
    ? `${names} trust the same roots.`
    : `${names} trust different roots${compatible ? ", and still each one the other's certificate: a change of root is under way" : ""}.`;
  const lines = proxies.flatMap(({ proxy, roots, accepted }) => [
    "",
    accepted
      ? `${proxy}, whose certificate the other takes, trusts`
      : `${proxy}, whose certificate the other refuses, trusts`,
    ...roots.map(({ serialNumber, subject, shared }) => `  ${serialNumber}  ${subject}${shared ? "" : " (it alone)"}`),
  ]);
  return [opening, ...lines].map((line) => `${wrapText(line, columns, "    ")}\n`).join("");
}
