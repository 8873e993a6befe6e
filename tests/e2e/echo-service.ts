// A Service of the shop's namespace that speaks a protocol of its own, and how it is reached through a sidecar.
import { writeFile } from "node:fs/promises";
import net from "node:net";
import path from "node:path";
import { waitFor } from "../tools/processes.ts";

const echoProgram = `
import net from "node:net";
const server = net.createServer({ allowHalfOpen: true }, (socket) => {
  socket.on("error", () => {});
  socket.pipe(socket);
});
server.listen(Number(process.env.PORT), process.env.HOST);
process.on("SIGTERM", () => process.exit(0));
`;

const manifest = `
apiVersion: v1
kind: ServiceAccount
metadata: { name: echo, namespace: shop }
---
apiVersion: v1
kind: Service
metadata: { name: echo, namespace: shop }
spec: { selector: { app: echo }, ports: [{ name: tcp-echo, port: 7, targetPort: 7007 }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: echo, namespace: shop }
spec:
  replicas: 1
  selector: { matchLabels: { app: echo } }
  template:
    metadata:
      labels: { app: echo }
      annotations: { local.tulle.io/command.echo: '["node", "echo.mjs"]' }
    spec:
      serviceAccountName: echo
      containers:
        - name: echo
          ports: [{ name: tcp-echo, containerPort: 7007 }]
          readinessProbe: { tcpSocket: { port: tcp-echo } }
`;

/** Into a copy of the shop, before it starts. */
export async function writeEchoService(folder: string): Promise<void> {
  await writeFile(path.join(folder, "echo.mjs"), echoProgram);
  await writeFile(path.join(folder, "echo.yaml"), manifest);
}

/** What comes back through a tunnel of that sidecar, once the far side has ended. */
export async function callThrough(sidecar: string, target: string, text: string): Promise<string> {
  const socket = net.connect({ host: sidecar, port: 15_007, allowHalfOpen: true });
  let received = "";
  let ended = false;
  let asked = false;
  socket.on("data", (data) => {
    received += data.toString();
    if (asked || !received.includes("\r\n\r\n")) return;
    asked = true;
    socket.write(text);
  });
  socket.on("error", (error) => (received += ` ${error.message}`));
  for (const event of ["end", "close"]) socket.on(event, () => (ended = true));
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  const details = (): string => received;
  try {
    // Envoy would take an end of the client's side for the end of the tunnel.
    await waitFor(() => ended || (text !== "" && received.endsWith(text)), { what: `${target}'s answer`, details });
    socket.end();
    await waitFor(() => ended, { what: `the end of a tunnel to ${target}`, details });
  } finally {
    socket.destroy();
  }
  return received;
}
