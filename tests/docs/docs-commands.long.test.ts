// The shell commands of all pages but those that a newcomer reads first, which docs-commands.test.ts runs.
import { describe } from "node:test";
import { pageTests } from "./page-commands.ts";

describe("the commands of each page", () => pageTests("others"));
