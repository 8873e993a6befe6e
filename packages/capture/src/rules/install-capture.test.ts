// What comes of an nft that does not do it: each failure says what to do.
import assert from "node:assert/strict";
import { test } from "node:test";
import { planCapture } from "./capture-plan.ts";
import { captureRules } from "./capture-rules.ts";
import { installCapture } from "./install-capture.ts";
import { CaptureFailure } from "./network-tools.ts";

const plan = planCapture({}).plan!;
const script = (text: string): readonly string[] => ["/bin/sh", "-c", text];
const failing = (message: string): readonly string[] => script(`cat > /dev/null; echo 'Error: ${message}' >&2; exit 1`);
const half = captureRules(plan).replaceAll(/^.*reject.*\n/gm, "");

const failures: readonly { readonly name: string; readonly prefix: readonly string[]; readonly message: RegExp }[] = [
  { name: "no nft", prefix: ["/nowhere/nft"], message: /^\/nowhere\/nft is not installed, .*apt-get install nftables/ },
  {
    name: "no right",
    prefix: failing("Could not process rule: Operation not permitted"),
    message: /Operation not permitted\. It takes CAP_NET_ADMIN .*run it as root/,
  },
  {
    name: "a kernel without NAT",
    prefix: failing("Could not process rule: No such file or directory"),
    message: /directory\. This kernel lacks a part .* Linux 5\.2 or newer with nf_tables, nft_chain_nat/,
  },
  { name: "an end without a word", prefix: script("exit 3"), message: /^nft: it ended with 3 and said nothing\.$/ },
  {
    name: "rules that are not there afterwards",
    prefix: script(`if [ "$1" = list ]; then cat <<'E'\n${half}E\nelse cat > /dev/null; fi`),
    message: /^nft took the rules, but the kernel has 15 of 16; they were removed again/,
  },
  {
    name: "a table that is not there afterwards",
    prefix: script(
      "if [ $1 = list ]; then echo 'Error: No such file or directory' >&2; exit 1; else cat > /dev/null; fi",
    ),
    message: /^nft took the rules, but the kernel has 0 of 16; /,
  },
];
for (const { name, prefix, message } of failures) {
  test(`${name}: the cause, and what to do`, async () => {
    await assert.rejects(installCapture(plan, { prefix }), (error) => {
      assert.ok(error instanceof CaptureFailure);
      assert.match(error.message, message);
      return true;
    });
  });
}

test("an nft that does not end is ended", async () => {
  await assert.rejects(installCapture(plan, { prefix: script("exec sleep 600"), timeoutMs: 200 }), /SIGKILL/);
});
