// The shell commands of pages about clusters, as they stand.
import { describe } from "node:test";
import { pageTests } from "../docs/page-commands.ts";

describe("the commands of pages about clusters", () => pageTests("on a cluster"));
