// The text of a pod's resolv.conf, as Kubernetes' documentation shows it ("DNS for Services and Pods").
import assert from "node:assert/strict";
import { test } from "node:test";
import { podResolverFile } from "./pod-resolver-file.ts";

test("a pod of a namespace", () => {
  assert.equal(
    podResolverFile({ namespace: "shop", servers: ["10.96.0.10"] }),
    "search shop.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n",
  );
});

test("the machine's own search path is behind the cluster's, once", () => {
  const searchDomains = ["example.com", "cluster.local"];
  assert.equal(
    podResolverFile({ namespace: "shop", servers: ["10.96.0.10", "fd96::a"], searchDomains }),
    "search shop.svc.cluster.local svc.cluster.local cluster.local example.com\n" +
      "nameserver 10.96.0.10\nnameserver fd96::a\noptions ndots:5\n",
  );
});
