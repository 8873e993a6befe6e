// What the machine's files say against a user namespace, and what the user is told to do.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cannotBeMade, forbiddenBy, ownRange } from "./user-namespace.ts";

const ann = { name: "ann", uid: 1000 };
const ranges = "bob:100000:65536\nann:165536:65536\nann:900000:10\n1000:300000:70000\n\nbroken\n";

test("the largest range is the user's, by name or by number", () => {
  assert.deepEqual(
    ownRange("uid", ann, (file) => (file === "/etc/subuid" ? ranges : "")),
    { start: 300_000, count: 70_000 },
  );
  assert.deepEqual(
    ownRange("gid", { name: "bob", uid: 1001 }, () => ranges),
    { start: 100_000, count: 65_536 },
  );
});

for (const { name, text, says, suggests } of [
  { name: "no file", text: "", says: /subuid gives user ann no range/, suggests: /--add-subuids 100000-165535 ann/ },
  {
    name: "others' ranges alone",
    text: "bob:100000:65536\n",
    says: /no range of numbers/,
    suggests: /--add-subuids 165536-231071 ann/,
  },
  { name: "too short a range", text: "ann:100000:1000\n", says: /1000 numbers, .*at least/, suggests: /usermod/ },
]) {
  test(`${name}: it is refused with what to do`, () => {
    assert.throws(
      () => ownRange("uid", ann, () => text),
      (error: Error & { suggestion: string }) => {
        assert.match(error.message, says);
        assert.match(error.suggestion, suggests);
        return true;
      },
    );
  });
}

for (const setting of ["user/max_user_namespaces", "user/max_net_namespaces", "kernel/unprivileged_userns_clone"]) {
  test(`${setting} = 0 is told, with the command that changes it`, () => {
    const refusal = forbiddenBy((file) => (file === `/proc/sys/${setting}` ? "0\n" : ""));
    const dotted = setting.replaceAll("/", ".");
    assert.match(refusal!.message, new RegExp(`${dotted.replaceAll(".", "\\.")} = 0`));
    assert.match(refusal!.suggestion, new RegExp(`sysctl -w ${dotted.replaceAll(".", "\\.")}=[1-9]`));
  });
}

test("a kernel without these settings, or with others, allows it", () => {
  assert.equal(
    forbiddenBy(() => ""),
    undefined,
  );
  assert.equal(
    forbiddenBy(() => "1\n"),
    undefined,
  );
});

test("where it fails, AppArmor's restriction is named if there is one", () => {
  const restricted = cannotBeMade("unshare: Permission denied", () => "1\n");
  assert.match(
    restricted.message,
    /AppArmor .*apparmor_restrict_unprivileged_userns = 1\): unshare: Permission denied/,
  );
  const other = cannotBeMade("mount: /proc: permission denied.", () => "");
  assert.match(other.message, /in a user namespace: mount: \/proc: permission denied/);
  assert.match(other.suggestion, /--privileged/);
});
