/**
 * IST0101, IST0161: the Secrets that Gateways name are there, hold what their mode needs, and have not expired. They
 * are looked for where the gateway's pods run. IST0138: two Gateways of the same pods show one certificate.
 */
import { authoritiesSuffix, authorityCredential, localhostSecret, serverCredential } from "../kinds/credentials.ts";
import type { ReadCredential } from "../kinds/credentials.ts";
import { nearestName } from "../findings/nearest-name.ts";
import { serverCredentialNames } from "../kinds/gateway-tls.ts";
import type { Gateway, Secret } from "../kinds/resource.ts";
import type { Path } from "../findings/places.ts";
import type { AnalyzedMesh, Analyzer, Discovery } from "./analyzer.ts";

const dayMs = 24 * 60 * 60 * 1000;
/** Time enough to renew a certificate by hand. */
const soonMs = 14 * dayMs;

const ownCertificate: ReadonlySet<string> = new Set(["SIMPLE", "MUTUAL", "OPTIONAL_MUTUAL"]);
const asksClients: ReadonlySet<string> = new Set(["MUTUAL", "OPTIONAL_MUTUAL"]);

export const gatewayCredentials: Analyzer = {
  name: "gateway-credentials",
  codes: ["IST0101", "IST0161", "IST0138"],
  *run(mesh) {
    const secrets = new Map(
      mesh.list("Secret").map((each) => [`${each.metadata.namespace}/${each.metadata.name}`, each]),
    );
    for (const resource of mesh.list("Gateway")) {
      const namespaces = new Set(mesh.workloadsOf(resource).map(({ namespace }) => namespace));
      for (const namespace of namespaces) yield* checkGateway(mesh, resource, namespace, secrets);
    }
    yield* sharedCertificates(mesh);
  },
};

interface NamedCredential {
  readonly name: string;
  /** The one that may hold the authorities for clients too. */
  readonly isFirst: boolean;
  readonly mode: string;
  readonly path: Path;
}

function credentialsOf({ spec }: Gateway): readonly NamedCredential[] {
  return spec.servers.flatMap(({ tls }, server): readonly NamedCredential[] => {
    const { mode = "PASSTHROUGH", credentialName } = tls ?? {};
    if (!ownCertificate.has(mode)) return [];
    const below: Path = ["spec", "servers", server, "tls"];
    return serverCredentialNames(tls ?? {}).map((name, index) => ({
      name: name.replace(/^kubernetes:\/\//, ""),
      mode,
      isFirst: index === 0,
      path: [...below, ...(credentialName === undefined ? ["credentialNames", index] : ["credentialName"])],
    }));
  });
}

function* checkGateway(
  mesh: AnalyzedMesh,
  resource: Gateway,
  namespace: string,
  secrets: ReadonlyMap<string, Secret>,
): Generator<Discovery> {
  const { nowMs = Date.now() } = mesh.options;
  for (const { name, mode, isFirst, path } of credentialsOf(resource)) {
    const secret = secrets.get(`${namespace}/${name}`);
    if (secret === undefined) {
      if (name === localhostSecret.name && namespace === localhostSecret.namespace) continue;
      yield missing(resource, path, namespace, name, secrets);
      continue;
    }
    yield* checkCredential(resource, path, `${namespace}/${name}`, serverCredential(secret), nowMs);
    if (!asksClients.has(mode) || !isFirst) continue;
    const authorities = secrets.get(`${namespace}/${name}${authoritiesSuffix}`) ?? secret;
    const holder = `${namespace}/${authorities.metadata.name}`;
    yield* checkCredential(resource, path, holder, authorityCredential(authorities), nowMs);
  }
}

function missing(
  resource: Gateway,
  path: Path,
  namespace: string,
  name: string,
  secrets: ReadonlyMap<string, Secret>,
): Discovery {
  const elsewhere = [...secrets.values()].find((secret) => secret.metadata.name === name)?.metadata.namespace;
  const near = nearestName(
    name,
    [...secrets.values()]
      .filter(({ metadata }) => metadata.namespace === namespace)
      .map(({ metadata }) => metadata.name),
  );
  return {
    code: "IST0101",
    resource,
    path,
    message: `the Secret "${name}" is not there in the namespace "${namespace}", where the gateway's pods run; the server waits for it`,
    suggestion:
      elsewhere !== undefined
        ? `There is one in "${elsewhere}": gateways take Secrets of their own namespace alone.`
        : near === undefined
          ? "Add that Secret."
          : `Did you mean "${near}"?`,
  };
}

function* checkCredential(
  resource: Gateway,
  path: Path,
  holder: string,
  read: ReadCredential<unknown>,
  nowMs: number,
): Generator<Discovery> {
  if (!read.ok) {
    yield { code: "IST0161", resource, path, message: `the Secret ${holder} cannot be used: ${read.message}` };
    return;
  }
  const until = new Date(read.expiresAtMs).toISOString();
  const suggestion = "Put a new certificate into the Secret: gateways take it over without a restart.";
  if (read.expiresAtMs <= nowMs) {
    yield {
      code: "IST0161",
      resource,
      path,
      message: `the Secret ${holder} has expired: it held until ${until}`,
      suggestion,
    };
  } else if (read.expiresAtMs - nowMs < soonMs) {
    const message = `the Secret ${holder} expires soon: it holds until ${until}`;
    yield { code: "IST0161", severity: "warning", resource, path, message, suggestion };
  }
}

/** A certificate that a Gateway shows: a Secret, or a pair of files. */
interface ShownCertificate {
  readonly resource: Gateway;
  readonly path: Path;
  readonly name: string;
}

function shownCertificates(resource: Gateway): readonly ShownCertificate[] {
  const files = resource.spec.servers.flatMap(({ tls }, server): readonly ShownCertificate[] => {
    const { mode = "PASSTHROUGH", serverCertificate: name, privateKey } = tls ?? {};
    if (!ownCertificate.has(mode) || name === undefined || privateKey === undefined) return [];
    return [{ resource, path: ["spec", "servers", server, "tls", "serverCertificate"], name }];
  });
  return [...credentialsOf(resource).map(({ path, name }) => ({ resource, path, name })), ...files];
}

/** Clients that reuse a connection for every name of its certificate would meet the wrong Gateway's routes. */
function* sharedCertificates(mesh: AnalyzedMesh): Generator<Discovery> {
  for (const shown of Map.groupBy(mesh.list("Gateway").flatMap(shownCertificates), ({ name }) => name).values()) {
    // Pods are many; what one Gateway alone shows is shared with nobody.
    if (new Set(shown.map(({ resource }) => resource)).size < 2) continue;
    const told = new Set<string>();
    for (const list of byPod(mesh, shown)) {
      const gateways = [...new Set(list.map(({ resource: { metadata } }) => `${metadata.namespace}/${metadata.name}`))];
      const names = gateways.join(", ");
      if (gateways.length < 2 || told.has(names)) continue;
      told.add(names);
      for (const { resource, path, name } of list) {
        yield {
          code: "IST0138",
          resource,
          path,
          message: `the certificate "${name}" is shown by several Gateways (${names}): a client that reuses its connection for another name would get 404`,
          suggestion: "Put their servers into one Gateway, or use a certificate for each.",
        };
      }
    }
  }
}

function byPod(mesh: AnalyzedMesh, shown: readonly ShownCertificate[]): Iterable<readonly ShownCertificate[]> {
  const pods = new Map<string, ShownCertificate[]>();
  for (const each of shown) {
    for (const pod of mesh.podsOf(each.resource)) {
      const list = pods.get(pod);
      if (list === undefined) pods.set(pod, [each]);
      else list.push(each);
    }
  }
  return pods.values();
}
