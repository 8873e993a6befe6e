// An application with OpenTelemetry's SDK for Node as its guide has it: no propagator and no sampler is chosen. It asks
// the next of the applications that `next` names for the rest of them, and answers what they say behind its own name.
"use strict";

const { NodeSDK } = require("@opentelemetry/sdk-node");
const { HttpInstrumentation } = require("@opentelemetry/instrumentation-http");
const { UndiciInstrumentation } = require("@opentelemetry/instrumentation-undici");

new NodeSDK({ instrumentations: [new HttpInstrumentation(), new UndiciInstrumentation()] }).start();
// After the start: what is loaded before it writes no spans.
const { createServer } = require("node:http");

createServer(async (request, response) => {
  const [host, ...rest] = new URL(request.url, "http://application").searchParams.get("next")?.split(",") ?? [""];
  const answer = host === "" ? undefined : await fetch(`http://${host}:8080/?next=${rest.join(",")}`);
  response.end(`node ${(await answer?.text()) ?? ""}`.trim());
}).listen(8080, process.env.HOST, () => process.stdout.write("listens\n"));
