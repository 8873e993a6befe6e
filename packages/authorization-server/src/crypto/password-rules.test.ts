// Which passwords are taken: the same wherever one is set.
import assert from "node:assert/strict";
import { test } from "node:test";
import { changeUserPassword, createUser } from "../admin/users.ts";
import { testPassword, testServer } from "../testing/test-server.ts";
import { passwordFault } from "./password-rules.ts";

test("a password is refused when it is guessed first, and for no kind of characters that it lacks", async () => {
  for (const { password, expected } of [
    { password: "short77", expected: "short" },
    { password: "x".repeat(1025), expected: "long" },
    { password: "line\nbreak and more", expected: "control" },
    { password: "password1", expected: "common" },
    { password: "PassWord1", expected: "common" },
    { password: "1qaz2wsx", expected: "common" },
    { password: "aaaaaaaaaaaa", expected: "common" },
    { password: "ABababababab", expected: "common" },
    { password: "Ann.Example", expected: "personal" },
    { password: "annexample2026!", expected: "personal" },
    { password: "2026 ann_example@auth.example", expected: "personal" },
    { password: "correct horse battery", expected: undefined },
    { password: "ann example has a longer one", expected: undefined },
    { password: "\u{1f40e}".repeat(2) + "battery", expected: undefined },
  ]) {
    assert.equal(await passwordFault(password, "ann.example@auth.example"), expected, password.slice(0, 40));
  }
  assert.equal(await passwordFault("1234567800", "12345678"), undefined, "a name without letters refuses nothing");
});

test("common passwords are refused on the command line and on the account page, with the reason", async (t) => {
  const server = await testServer(t);
  const { database, passwords } = server.context;
  const common = ["the password is a common one, which is guessed first; choose another"];
  const user = { name: "bob", password: "iloveyou" };
  assert.deepEqual((await createUser(database, passwords, user)).problems, common);
  await server.user();
  assert.deepEqual((await changeUserPassword(database, passwords, "ann", "Password123")).problems, common);
  const browser = server.browser();
  const page = await browser.signIn(await browser.open(`${server.issuer}/account`), "ann", testPassword);
  for (const { wanted, expected } of [
    { wanted: "qwertyuiop", expected: /a common one/ },
    { wanted: "ann-2026-11-23", expected: /made of your user name/ },
    { wanted: "b".repeat(1025), expected: /1024 characters at most/ },
  ]) {
    const refused = await browser.submit(page, /\/password$/, { current: testPassword, new: wanted });
    assert.equal(refused.status, 400);
    assert.match(refused.body, expected);
  }
  const changed = await browser.submit(page, /\/password$/, { current: testPassword, new: "a better one by far" });
  assert.equal(changed.status, 200);
});
