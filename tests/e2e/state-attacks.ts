// What a program in a pod tries against the state of its mesh: each is a script of sh, whose first argument is the
// state folder. It succeeds, and prints what it found, where it finds something that is not the pod's own.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";

const attacks: readonly { readonly name: string; readonly command: string }[] = [
  { name: "reads the authority's key", command: 'cat "$1"/ca/authority.json "$1"/ca/*key* 2>/dev/null' },
  {
    name: "reads another pod's token",
    command: 'found=$(find "$1" -name token 2>/dev/null | grep -v "$POD_NAME"); [ -n "$found" ] && cat $found',
  },
  { name: "finds keys and tokens of the mesh", command: 'cat "$1"/token "$1"/*.pem "$1"/*key* 2>/dev/null | grep .' },
  {
    name: "finds a socket that commands the mesh",
    command:
      'find "$1" "${XDG_RUNTIME_DIR:-/nowhere}/tulle" "${XDG_STATE_HOME:-/nowhere}" -type s 2>/dev/null | grep -v "$POD_NAME"',
  },
  {
    name: "reads the key behind https://localhost",
    command: 'cat "${XDG_STATE_HOME:-/nowhere}"/tulle/development-ca/* 2>/dev/null | grep .',
  },
  {
    name: "goes by the pod's first process",
    command: 'cat /proc/1/root"$1"/ca/* /proc/1/environ /proc/1/cwd/.tulle/ca/* 2>/dev/null | grep .',
  },
  {
    name: "goes by other processes' files",
    command:
      'for each in /proc/[0-9]*; do case $each in /proc/$$) continue;; esac; cat "$each/root$1"/ca/* "$each"/fd/*/ca/* ' +
      "2>/dev/null; done | grep .",
  },
  { name: "takes the mount away", command: 'umount "$1" 2>/dev/null && ls "$1"' },
  {
    name: "takes the mount away in a user namespace of its own",
    command:
      'unshare --user --map-root-user --mount sh -c \'umount "$1" && cat "$1"/ca/*\' x "$1" 2>/dev/null | grep .',
  },
];

/** All of them, one after another in one process: to get into a pod takes longer. */
export function attackScript(stateFolder: string): string {
  const lines = attacks.map(
    ({ command }, index) => `out=$( (${command}) 2>&1 ); echo "attack ${index} ended with $?: $out"`,
  );
  return [`set -- '${stateFolder}'`, ...lines].join("\n");
}

/** `said` is what the script has printed. */
export async function assertAttacksFailed(t: TestContext, said: string): Promise<void> {
  const parts = said.split(/^attack \d+ ended with /m).slice(1);
  assert.equal(parts.length, attacks.length, said);
  for (const [index, { name }] of attacks.entries())
    await t.test(name, () => assert.match(parts[index]!, /^[1-9]\d*: /));
}
