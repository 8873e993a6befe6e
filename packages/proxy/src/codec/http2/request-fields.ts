// A request's field section as the head that everything above the codec works with. Strict by RFC 9113 §8; what is
// wrong makes the request malformed (§8.1.1), and nothing of it goes further.
import { HeaderMap } from "../../http/header-map.ts";
import type { RequestHead } from "../../http/message.ts";
import { isHostField } from "../http1/authority.ts";
import { type FieldKind, fieldKinds, isPseudo } from "./field-syntax.ts";
import { fieldOverheadBytes, type FieldSink } from "./hpack/hpack-decoder.ts";

export interface FieldLimits {
  readonly maxHeadBytes: number;
  readonly maxFieldCount: number;
}

/** Reads fields in order; one instance a connection, begun anew for each section. */
export abstract class SectionFields implements FieldSink {
  readonly #limits: FieldLimits;
  entries: string[] = [];
  #fieldCount = 0;
  #lineCount = 0;
  /** Of names and values. */
  textBytes = 0;
  #hasRegular = false;
  #contentLength = "";
  /** -1 where none is declared. */
  contentLengthBytes = -1;
  isTooLarge = false;
  /** It is so by the number of its fields. */
  hasTooMany = false;
  /** What is malformed; the first fault counts. */
  fault = "";

  constructor(limits: FieldLimits) {
    this.#limits = limits;
  }

  begin(): void {
    this.entries = [];
    this.#fieldCount = 0;
    this.#lineCount = 0;
    this.textBytes = 0;
    this.#hasRegular = false;
    this.#contentLength = "";
    this.contentLengthBytes = -1;
    this.isTooLarge = false;
    this.hasTooMany = false;
    this.fault = "";
  }

  onField(name: string, value: string, kind: FieldKind): void {
    // A client may send each cookie as a field of its own (§8.2.3): together they are one.
    if (kind !== fieldKinds.cookie) this.#fieldCount += 1;
    this.#lineCount += 1;
    this.textBytes += name.length + value.length;
    const listBytes = this.textBytes + this.#lineCount * fieldOverheadBytes;
    // Beyond the limits nothing is kept: a table's entry costs its sender one byte.
    if (listBytes > this.#limits.maxHeadBytes || this.#fieldCount > this.#limits.maxFieldCount) {
      this.isTooLarge = true;
      this.hasTooMany = this.#fieldCount > this.#limits.maxFieldCount;
      return;
    }
    if (isPseudo(kind)) {
      if (this.#hasRegular) this.fail("a pseudo-header behind a field");
      else this.takePseudo(kind, value);
      return;
    }
    this.#hasRegular = true;
    if (kind === fieldKinds.plain) this.entries.push(name, value);
    else this.takeField(kind, name, value);
  }

  protected abstract takePseudo(kind: FieldKind, value: string): void;

  /** One that says something to the codec. */
  protected takeField(kind: FieldKind, name: string, value: string): void {
    if (kind === fieldKinds.unsound) this.fail("invalid field");
    else if (kind === fieldKinds.ofConnection) this.fail("a field of the connection");
    else if (kind === fieldKinds.contentLength) this.#takeContentLength(name, value);
    else this.entries.push(name, value);
  }

  #takeContentLength(name: string, value: string): void {
    // Twice the same is once (RFC 9110 §8.6).
    if (this.#contentLength === "") {
      this.#contentLength = value;
      this.contentLengthBytes = Number(value);
      this.entries.push(name, value);
    } else if (this.#contentLength !== value) {
      this.fail("content-length");
    }
  }

  protected fail(fault: string): void {
    if (this.fault === "") this.fault = fault;
  }
}

export class RequestFields extends SectionFields {
  #method = "";
  #scheme = "";
  #authority: string | undefined = undefined;
  #path = "";
  #protocol = "";
  #host: string | undefined = undefined;
  #cookies = "";
  expectsContinue = false;

  override begin(): void {
    super.begin();
    this.#method = "";
    this.#scheme = "";
    this.#authority = undefined;
    this.#path = "";
    this.#protocol = "";
    this.#host = undefined;
    this.#cookies = "";
    this.expectsContinue = false;
  }

  protected override takePseudo(kind: FieldKind, value: string): void {
    switch (kind) {
      case fieldKinds.method:
        if (this.#method !== "") this.fail(":method");
        this.#method = value;
        break;
      case fieldKinds.scheme:
        if (this.#scheme !== "") this.fail(":scheme");
        this.#scheme = value.toLowerCase();
        break;
      case fieldKinds.authority:
        if (this.#authority !== undefined) this.fail(":authority");
        this.#authority = value;
        break;
      case fieldKinds.path:
        if (this.#path !== "") this.fail(":path");
        this.#path = value;
        break;
      case fieldKinds.protocol:
        if (this.#protocol !== "") this.fail(":protocol");
        this.#protocol = value.toLowerCase();
        break;
      default:
        this.fail("an unknown pseudo-header");
    }
  }

  protected override takeField(kind: FieldKind, name: string, value: string): void {
    switch (kind) {
      case fieldKinds.host:
        if (this.#host !== undefined || !isHostField(value)) this.fail("host");
        this.#host = value;
        break;
      case fieldKinds.cookie:
        // §8.2.3: they may come in pieces, and are one for whoever is not HTTP/2.
        this.#cookies += this.#cookies === "" ? value : `; ${value}`;
        break;
      case fieldKinds.te:
        if (value.toLowerCase() === "trailers") this.entries.push(name, "trailers");
        else this.fail("te");
        break;
      case fieldKinds.expect:
        if (value.toLowerCase() === "100-continue") this.expectsContinue = true;
        else this.entries.push(name, value);
        break;
      default:
        super.takeField(kind, name, value);
    }
  }

  /** Undefined where the request is malformed. `connectAllowed`: extended CONNECT was offered (RFC 8441 §4). */
  head(connectAllowed: boolean): RequestHead | undefined {
    const method = this.#method;
    const isConnect = method === "CONNECT";
    const isExtended = this.#protocol !== "";
    if (isExtended && (!isConnect || !connectAllowed)) this.fail(":protocol");
    // §8.5: a CONNECT names where it leads to and nothing else.
    if (isConnect && !isExtended) {
      if (this.#scheme !== "" || this.#path !== "" || (this.#authority ?? "") === "") this.fail("CONNECT");
    } else if (method === "" || this.#scheme === "" || this.#path === "") {
      this.fail("a pseudo-header is missing");
    } else if (this.#path === "*" && method !== "OPTIONS") {
      this.fail(":path");
    }
    // §8.3.1: two hosts that differ would be taken for different ones by two readers.
    const host = this.#host;
    const authority = this.#authority ?? host ?? "";
    if (host !== undefined && host.toLowerCase() !== authority.toLowerCase()) this.fail("host");
    if (this.fault !== "") return undefined;
    if (this.#cookies !== "") this.entries.push("cookie", this.#cookies);
    return {
      // As Envoy: what is behind sees the upgrade that it stands for.
      method: isExtended ? "GET" : method,
      scheme: isConnect && !isExtended ? "http" : this.#scheme,
      authority,
      path: this.#path,
      protocol: "HTTP/2",
      headers: new HeaderMap(this.entries),
      hasHost: authority !== "",
      upgrade: isConnect ? (isExtended ? this.#protocol : "connect") : undefined,
    };
  }
}

/** Trailers have no pseudo-headers (§8.1), and say nothing of the body's length or of where it goes. */
export class TrailerFields extends SectionFields {
  protected override takePseudo(): void {
    this.fail("a pseudo-header among trailers");
  }

  protected override takeField(kind: FieldKind, name: string, value: string): void {
    // What frames or routes a message has no place behind it, as over HTTP/1.1 (RFC 9110 §6.5.1).
    if (kind === fieldKinds.contentLength || kind === fieldKinds.host) this.fail(`${name} among trailers`);
    else super.takeField(kind, name, value);
  }
}
