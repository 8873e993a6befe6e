// One HTTPS request, by HTTP/1.1 or HTTP/2, as a table needs it: what the server showed, how the handshake ended, what
// came back. A refusal is an outcome here, since under TLS 1.3 a client learns of it only after it has sent its
// request.
import { connect, type SecureVersion, type TLSSocket } from "node:tls";
import type { TestCertificate } from "../tools/certificates.ts";
import { exchangeStream, type Http2Request } from "../tools/http2-client.ts";
import { parseAnswers, type RawAnswer } from "../tools/raw-client.ts";

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
  /** Bytes of HTTP/1.1 or a stream of HTTP/2. */
  readonly request: string | Http2Request;
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
export async function tlsRequest(options: TlsRequest): Promise<TlsOutcome> {
  const { host, port, serverName, clientCertificate, minVersion, maxVersion, ciphers, alpn = ["http/1.1"] } = options;
  const { request } = options;
  let shown: Pick<TlsOutcome, "shown" | "version" | "alpn" | "cipher"> = {};
  const socket = connect({
    host,
    port,
    rejectUnauthorized: false,
    ...(serverName === undefined ? {} : { servername: serverName }),
    ...(clientCertificate === undefined ? {} : { key: clientCertificate.key, cert: clientCertificate.certificate }),
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
  });
  const answer =
    typeof request === "string"
      ? await exchangeBytes(socket, request)
      : await exchangeStream(socket, "secureConnect", request);
  if (answer === undefined) return { ...shown, status: "refused", headers: {}, body: "" };
  return { ...shown, status: answer.status, headers: Object.fromEntries(answer.headers), body: answer.body };
}

function exchangeBytes(socket: TLSSocket, bytes: string): Promise<RawAnswer | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<RawAnswer | undefined>();
  let received = "";
  socket.once("secureConnect", () => socket.write(bytes, "latin1"));
  socket.setTimeout(limitMs, () => socket.destroy(new Error(`no end within ${limitMs} ms`)));
  socket.on("data", (chunk) => (received += chunk.toString("latin1")));
  socket.once("error", (error) => {
    if (error.message.startsWith("no end")) reject(error);
  });
  socket.once("close", () => resolve(received === "" ? undefined : parseAnswers(received, ["GET"])[0]));
  return promise;
}
