// One HTTPS request as a table needs it: what the server showed, how the handshake ended, what came back. A refusal is
// an outcome here, since under TLS 1.3 a client learns of it only after it has sent its request.
import { connect, type SecureVersion } from "node:tls";
import type { TestCertificate } from "../tools/certificates.ts";
import { parseAnswers } from "../tools/raw-client.ts";

export interface TlsRequest {
  readonly host: string;
  readonly port: number;
  /** None sends no name. */
  readonly serverName?: string;
  readonly clientCertificate?: TestCertificate | undefined;
  readonly minVersion?: SecureVersion;
  readonly maxVersion?: SecureVersion;
  readonly ciphers?: string;
  readonly alpn?: readonly string[];
  readonly bytes: string;
}

export interface TlsOutcome {
  /** Common name of the server's certificate; missing when the handshake did not come that far. */
  readonly shown?: string;
  readonly version?: string;
  readonly alpn?: string;
  readonly cipher?: string;
  /** Status of the answer, or `refused`. */
  readonly status: number | "refused";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const limitMs = 60_000;

/** @throws when nothing ends the connection in time */
export function tlsRequest(options: TlsRequest): Promise<TlsOutcome> {
  const { promise, resolve, reject } = Promise.withResolvers<TlsOutcome>();
  const { host, port, serverName, clientCertificate, minVersion, maxVersion, ciphers, alpn = ["http/1.1"] } = options;
  let received = "";
  let shown: Pick<TlsOutcome, "shown" | "version" | "alpn" | "cipher"> = {};
  const socket = connect({
    host,
    port,
    rejectUnauthorized: false,
    ...(serverName === undefined ? {} : { servername: serverName }),
    ...(clientCertificate === undefined ? {} : { cert: clientCertificate.certificate, key: clientCertificate.key }),
    ...(minVersion === undefined ? {} : { minVersion }),
    ...(maxVersion === undefined ? {} : { maxVersion }),
    ...(ciphers === undefined ? {} : { ciphers }),
    ALPNProtocols: [...alpn],
  });
  socket.once("secureConnect", () => {
    // Workloads have no subject, and Node's types do not know of that.
    const subject = socket.getPeerCertificate().subject as { readonly CN?: string } | undefined;
    shown = {
      shown: subject?.CN ?? "",
      version: socket.getProtocol() ?? "",
      alpn: String(socket.alpnProtocol),
      cipher: socket.getCipher().standardName,
    };
    socket.write(options.bytes, "latin1");
  });
  socket.setTimeout(limitMs, () => socket.destroy(new Error(`no end within ${limitMs} ms`)));
  socket.on("data", (chunk) => (received += chunk.toString("latin1")));
  socket.once("error", (error) => {
    if (error.message.startsWith("no end")) reject(error);
  });
  socket.once("close", () => {
    const [answer] = received === "" ? [] : parseAnswers(received, ["GET"]);
    if (answer === undefined) resolve({ ...shown, status: "refused", headers: {}, body: "" });
    else resolve({ ...shown, status: answer.status, headers: Object.fromEntries(answer.headers), body: answer.body });
  });
  return promise;
}
