// How the commands of a page are found and what their comments mean.
import assert from "node:assert/strict";
import { test } from "node:test";
import { shellBlocks } from "./shell-blocks.ts";

const page = `# Title

<!-- run: quick start -->
<!-- prints: "id": 1 -->
\`\`\`sh
npm start
\`\`\`

1. In a list:

   <!-- not run: needs another machine -->
   \`\`\`sh
   tulle join
   \`\`\`

\`\`\`json
{}
\`\`\`

<!-- about something else -->
\`\`\`bash
curl localhost:8080
\`\`\`
`;

test("blocks with their line, commands and fate", () => {
  assert.deepEqual(shellBlocks("README.md", page), [
    {
      page: "README.md",
      line: 5,
      commands: "npm start",
      fate: { kind: "run", session: "quick start", prints: ['"id": 1'] },
    },
    { page: "README.md", line: 12, commands: "tulle join", fate: { kind: "notRun", reason: "needs another machine" } },
    { page: "README.md", line: 21, commands: "curl localhost:8080", fate: { kind: "unmarked" } },
  ]);
});
