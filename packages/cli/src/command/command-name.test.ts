// How a command is named to a person, by how it was started.
import assert from "node:assert/strict";
import { test } from "node:test";
import { commandName, withCommandName } from "./command-name.ts";

const cloneScript = "/srv/ann/tulle/tulle";
const names = [
  { name: "in the clone", invokedAs: "./tulle", cwd: "/srv/ann/tulle", expected: "./tulle" },
  { name: "from a folder of the clone", invokedAs: "../tulle", cwd: "/srv/ann/tulle/docs", expected: "../tulle" },
  { name: "by its whole path", invokedAs: "/srv/ann/tulle/tulle", cwd: "/opt", expected: "/srv/ann/tulle/tulle" },
  { name: "by a link on PATH", invokedAs: "/srv/ann/bin/tulle", cwd: "/srv", expected: "tulle" },
  { name: "by a link that is on no PATH", invokedAs: "/srv/ann/x/tulle", cwd: "/srv/ann", expected: "./x/tulle" },
  { name: "by npm start", invokedAs: "packages/cli/bin/tulle.mjs", cwd: "/srv/ann/tulle", expected: "./tulle" },
  {
    name: "by npm, in a folder of the clone",
    invokedAs: "/x/tulle.mjs",
    cwd: "/srv/ann/tulle/docs",
    expected: "../tulle",
  },
  { name: "without a launcher", invokedAs: undefined, cwd: "/srv/ann/tulle", expected: "tulle" },
  {
    name: "in a folder with a space",
    invokedAs: "my tulle/tulle",
    cwd: "/srv",
    expected: String.raw`./my\ tulle/tulle`,
  },
  {
    name: "of an installed package that is not on PATH",
    invokedAs: "/opt/bin/tulle",
    cwd: "/opt",
    cloneScript: undefined,
    expected: "./bin/tulle",
  },
];
for (const { name, expected, ...invocation } of names) {
  test(`the name of a command that was started ${name}`, () => {
    const searchPath = "/usr/bin:/srv/ann/bin/:";
    assert.equal(commandName({ cloneScript, searchPath, ...invocation }), expected);
  });
}

const texts = [
  { text: "Start it: tulle up shop", expected: "Start it: ./tulle up shop" },
  { text: "'tulle --help' lists all commands.", expected: "'./tulle --help' lists all commands." },
  { text: "Choose one:\n  tulle … --dir a", expected: "Choose one:\n  ./tulle … --dir a" },
  { text: "Usage: tulle proxy-config [options]", expected: "Usage: ./tulle proxy-config [options]" },
  { text: "tulle: nothing runs in tulle up-here", expected: "tulle: nothing runs in tulle up-here" },
  {
    text: "set them for tulle up: it reads /etc/tulle up",
    expected: "set them for ./tulle up: it reads /etc/tulle up",
  },
];
for (const { text, expected } of texts) {
  test(`a text that names a command: ${text}`, () => {
    assert.equal(withCommandName(text, "./tulle", ["up", "proxy-config"]), expected);
  });
}
