/**
 * The attributes that expressions read, as far as any proxy has them (Envoy: intro/arch_overview/advanced/attributes,
 * and Istio's for metrics). One that nobody has is a slip of the pen: Tulle's proxy has no value for it, and an
 * Envoy logs nothing any more.
 */
import type { CelTree } from "@tulle/telemetry/cel";
import { nearestName } from "../findings/nearest-name.ts";

const words = (text: string): readonly string[] => text.split(/\s+/);

const ofCertificates = `tls_version subject_local_certificate subject_peer_certificate dns_san_local_certificate
  dns_san_peer_certificate uri_san_local_certificate uri_san_peer_certificate sha256_peer_certificate_digest`;

/** Whose fields are all known. */
const fields: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    request: `path url_path query host scheme method referer useragent id protocol headers headers_bytes time duration
      size total_size`,
    response: "code code_details flags grpc_status headers headers_bytes trailers size total_size backend_latency",
    source: "address port",
    destination: "address port",
    connection: `id mtls requested_server_name termination_details transport_failure_reason ${ofCertificates}`,
    upstream: `address port local_address locality transport_failure_reason request_attempt_count
      cx_pool_ready_duration num_endpoints ${ofCertificates}`,
    xds: `node cluster_name cluster_metadata route_name route_metadata virtual_host_name virtual_host_metadata
      upstream_host_metadata upstream_host_locality_metadata filter_chain_name listener_metadata listener_direction`,
  }).map(([name, text]) => [name, words(text)]),
);

const roots: readonly string[] = [
  ...fields.keys(),
  ...words(`metadata filter_state upstream_filter_state node upstream_peer downstream_peer cluster_name cluster_metadata
    route_name route_metadata upstream_host_metadata listener_direction listener_metadata plugin_name plugin_root_id
    plugin_vm_id`),
];

/** Types are values, too (cel-spec: langdef, "Values"); `google` begins the names of messages. */
const types = words("bool bytes double dyn duration google int list map null_type string timestamp type uint");

/** Macros whose first input is the name of each element in the others (cel-spec: langdef, "Macros"). */
const comprehensions: ReadonlySet<string> = new Set(["all", "exists", "exists_one", "filter", "map"]);

/** What is wrong with the first attribute that no proxy has, after the word "expression". */
export function attributeProblem(tree: CelTree, bound: ReadonlySet<string> = new Set()): string | undefined {
  const first = (trees: readonly CelTree[], names = bound): string | undefined => {
    for (const each of trees) {
      const problem = attributeProblem(each, names);
      if (problem !== undefined) return problem;
    }
    return undefined;
  };
  switch (tree.type) {
    case "literal":
    case "bytes":
      return undefined;
    case "name":
      return bound.has(tree.name) ? undefined : rootProblem(tree.name, "");
    case "select":
      return tree.of.type === "name" && !bound.has(tree.of.name)
        ? (rootProblem(tree.of.name, `.${tree.field}`) ?? fieldProblem(tree.of.name, tree.field))
        : attributeProblem(tree.of, bound);
    case "not":
    case "negate":
      return attributeProblem(tree.of, bound);
    case "index":
      return first([tree.of, tree.key]);
    case "list":
      return first(tree.elements);
    case "map":
      return first(tree.entries.flatMap(({ key, value }) => [key, value]));
    case "message":
      return first(tree.entries.map(({ value }) => value));
    case "binary":
      return first([tree.left, tree.right]);
    case "conditional":
      return first([tree.condition, tree.whenTrue, tree.whenFalse]);
    case "call": {
      const { of, name, inputs } = tree;
      if (of === undefined) return first(inputs);
      const [element] = inputs;
      const binds = comprehensions.has(name) && element?.type === "name";
      return attributeProblem(of, bound) ?? first(inputs, binds ? new Set([...bound, element.name]) : bound);
    }
  }
}

function rootProblem(name: string, rest: string): string | undefined {
  if (roots.includes(name) || types.includes(name)) return undefined;
  const nearest = nearestName(name, roots);
  return `reads ${name}${rest}, which is no attribute${nearest === undefined ? "" : `; did you mean ${nearest}${rest}?`}`;
}

function fieldProblem(root: string, field: string): string | undefined {
  const known = fields.get(root);
  if (known === undefined || known.includes(field)) return undefined;
  const nearest = nearestName(field, known);
  const instead = nearest === undefined ? `${root} has ${known.join(", ")}` : `did you mean ${root}.${nearest}?`;
  return `reads ${root}.${field}, which is no attribute; ${instead}`;
}
