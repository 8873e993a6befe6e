// Known ways to make two parsers disagree on where a request ends, written down from the literature. Each entry is what
// a client would send; `/smuggled` is the request that must never be taken for one of its own. Seeds of the
// differential runs.

export interface SmugglingEntry {
  readonly name: string;
  /** Where it has been described. */
  readonly source: string;
  /** Latin1 text of the bytes. */
  readonly text: string;
  /**
   * What the codec makes of it: status and details of the refusal behind so many sound requests, or no refusal and so
   * many requests, of which none is the smuggled one.
   */
  readonly expected: { readonly taken: number; readonly error?: string };
}

const linhart = "Linhart, Klein, Heled, Orrin: HTTP Request Smuggling (2005)";
const desync = "Kettle: HTTP Desync Attacks, Request Smuggling Reborn (2019)";
const klein = "Klein: HTTP Request Smuggling in 2020, New Variants";
const browsers = "Kettle: Browser-Powered Desync Attacks (2022)";
const endgame = "Kettle: HTTP/1.1 Must Die, the Desync Endgame (2025)";
const tReqs = "Jabiyev, Sprecher, Onarlioglu, Kirda: T-Reqs, HTTP Request Smuggling with Differential Fuzzing (2021)";
const garden = "Kallus, Anantharaman, Locasto, Smith: The HTTP Garden (2024)";
const chunks = "Weikop: Funky chunks, abusing ambiguous chunk line terminators (2025)";
const rfc = (section: string): string => `RFC 9112 §${section}`;

const smuggled = "GET /smuggled HTTP/1.1\r\nHost: b\r\n\r\n";
const post = (fields: string, body: string): string => `POST / HTTP/1.1\r\nHost: a\r\n${fields}\r\n${body}`;
/** A body that ends at once for who reads chunks. */
const endsAtOnce = `0\r\n\r\n${smuggled}`;
const chunked = "Transfer-Encoding: chunked\r\n";
const lengthOf = (body: string): string => `Content-Length: ${body.length}\r\n`;

const both = "400 http1.content_length_and_chunked_not_allowed";
const badCoding = "501 http1.invalid_transfer_encoding";
const malformed = "400 http1.codec_error";
const refused = (error: string, taken = 0): SmugglingEntry["expected"] => ({ taken, error });

const contradictions: readonly SmugglingEntry[] = [
  {
    name: "CL.TE",
    source: desync,
    text: post(`${lengthOf(endsAtOnce)}${chunked}`, endsAtOnce),
    expected: refused(both),
  },
  {
    name: "TE.CL",
    source: desync,
    text: post(`Content-Length: 4\r\n${chunked}`, `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`),
    expected: refused(both),
  },
  {
    name: "TE before CL",
    source: rfc("6.3"),
    text: post(`${chunked}${lengthOf(endsAtOnce)}`, endsAtOnce),
    expected: refused(both),
  },
  {
    name: "two lengths",
    source: linhart,
    text: post(`Content-Length: 0\r\nContent-Length: ${smuggled.length}\r\n`, smuggled),
    expected: refused(malformed),
  },
  {
    name: "two equal lengths",
    source: rfc("6.3"),
    text: post(`Content-Length: ${smuggled.length}\r\nContent-Length: ${smuggled.length}\r\n`, smuggled),
    expected: refused(malformed),
  },
  {
    name: "a list of lengths",
    source: rfc("6.3"),
    text: post(`Content-Length: 0, ${smuggled.length}\r\n`, smuggled),
    expected: refused(malformed),
  },
  {
    name: "CL.0: a body that a back end ignores",
    source: browsers,
    text: `POST /images/logo.png HTTP/1.1\r\nHost: a\r\n${lengthOf(smuggled)}\r\n${smuggled}`,
    expected: { taken: 1 },
  },
  {
    name: "GET with a body",
    source: linhart,
    text: `GET / HTTP/1.1\r\nHost: a\r\n${lengthOf(smuggled)}\r\n${smuggled}`,
    expected: { taken: 1 },
  },
  {
    name: "HEAD with a body",
    source: garden,
    text: `HEAD / HTTP/1.1\r\nHost: a\r\n${lengthOf(smuggled)}\r\n${smuggled}`,
    expected: { taken: 1 },
  },
  {
    name: "0.CL by an odd Expect",
    source: endgame,
    text: post(`Expect: y 100-continue\r\n${lengthOf(smuggled)}`, smuggled),
    expected: { taken: 1 },
  },
];

const odd = (name: string, source: string, coding: string, error = badCoding): SmugglingEntry => ({
  name: `TE.TE: ${name}`,
  source,
  text: post(`${coding}\r\n`, endsAtOnce),
  expected: refused(error),
});

const codings: readonly SmugglingEntry[] = [
  odd("xchunked", desync, "Transfer-Encoding: xchunked"),
  odd("a space before the colon", desync, "Transfer-Encoding : chunked", malformed),
  odd("a tab before the colon", desync, "Transfer-Encoding\t: chunked", malformed),
  odd("chunked twice", desync, "Transfer-Encoding: chunked\r\nTransfer-Encoding: x"),
  odd("chunked, then chunked", desync, "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
  odd("chunked, identity", desync, "Transfer-Encoding: chunked, identity"),
  odd("identity, chunked", desync, "Transfer-Encoding: identity, chunked"),
  odd("identity", rfc("6.1"), "Transfer-Encoding: identity"),
  odd("gzip, chunked", rfc("6.1"), "Transfer-Encoding: gzip, chunked"),
  odd("chunked with a parameter", tReqs, "Transfer-Encoding: chunked;q=1"),
  odd("a quoted coding", desync, 'Transfer-Encoding: "chunked"'),
  odd("an apostrophe", desync, "Transfer-Encoding: 'chunked'"),
  odd("a vertical tab before it", desync, "Transfer-Encoding: \x0bchunked", "400 http1.invalid_characters"),
  odd("a form feed behind it", tReqs, "Transfer-Encoding: chunked\x0c", "400 http1.invalid_characters"),
  odd("a NUL behind it", garden, "Transfer-Encoding: chunked\0", "400 http1.invalid_characters"),
  odd("a non-breaking space behind it", garden, "Transfer-Encoding: chunked\xa0"),
  odd("hidden by a folded line", desync, "X: y\r\n Transfer-Encoding: chunked", "400 http1.obs_fold"),
  odd("folded before its value", desync, "Transfer-Encoding:\r\n chunked", "400 http1.obs_fold"),
  odd("behind a bare CR", desync, "X: y\rTransfer-Encoding: chunked", "400 http1.bare_cr"),
  odd("behind a bare LF", desync, "X: y\nTransfer-Encoding: chunked", "400 http1.bare_lf"),
  odd("an empty coding", tReqs, "Transfer-Encoding:"),
  odd("a comma alone", tReqs, "Transfer-Encoding: ,chunked"),
  odd("a space within the name", klein, "Transfer Encoding: chunked", malformed),
  odd("a byte above ASCII in the name", garden, "\x84Transfer-Encoding: chunked", malformed),
];

const length = (name: string, source: string, value: string, error = malformed): SmugglingEntry => ({
  name: `length: ${name}`,
  source,
  text: post(`Content-Length${value}\r\n`, smuggled),
  expected: refused(error),
});

const lengths: readonly SmugglingEntry[] = [
  length("a sign", klein, ": +5"),
  length("a minus", klein, ": -1"),
  length("a space within", klein, ": 5 6"),
  length("hexadecimal", garden, ": 0x24"),
  length("with an exponent", tReqs, ": 1e1"),
  length("an underscore", garden, ": 1_0"),
  length("a fraction", tReqs, ": 3.0"),
  length("empty", tReqs, ":"),
  length("a letter behind it", klein, ": 5abc"),
  length("a NUL behind it", garden, ": 5\0", "400 http1.invalid_characters"),
  length("64 bits and one more", "CVE-2021-40346 of HAProxy, its like in others", ": 18446744073709551652"),
  length("a space before the colon", klein, " : 5"),
];

const chunkText = (name: string, source: string, body: string, error = malformed): SmugglingEntry => ({
  name: `chunks: ${name}`,
  source,
  text: post(chunked, body),
  expected: refused(error),
});

const chunkFraming: readonly SmugglingEntry[] = [
  chunkText("a size that overflows 64 bits", rfc("7.1"), `10000000000000005\r\nhello\r\n${endsAtOnce}`),
  chunkText("0x", garden, `0x5\r\nhello\r\n${endsAtOnce}`),
  chunkText("a sign", garden, `+5\r\nhello\r\n${endsAtOnce}`),
  chunkText("a minus", garden, `-1\r\nhello\r\n${endsAtOnce}`),
  chunkText("an underscore", garden, `0_5\r\nhello\r\n${endsAtOnce}`),
  chunkText("a space before the size", tReqs, ` 5\r\nhello\r\n${endsAtOnce}`),
  chunkText("a space behind the size", "CVE-2021-22959 of llhttp", `5 \r\nhello\r\n${endsAtOnce}`),
  chunkText("no size", tReqs, `\r\nhello\r\n${endsAtOnce}`),
  chunkText("a bare LF behind the size", chunks, `5\nhello\r\n${endsAtOnce}`),
  chunkText("a bare CR behind the size", chunks, `5\rhello\r\n${endsAtOnce}`),
  chunkText(
    "TERM.EXT: a bare LF in an extension",
    chunks,
    `2;\nxx\r\n${smuggled.length.toString(16)}\r\n${endsAtOnce}`,
  ),
  chunkText("EXT.TERM: a bare CR in an extension", chunks, `2;\rxx\r\n${endsAtOnce}`),
  chunkText("a NUL in an extension", "CVE-2021-22960 of llhttp", `5;\0\r\nhello\r\n${endsAtOnce}`),
  chunkText("TERM.SPILL: two bytes behind the data that end no line", chunks, `5\r\nhelloXX${endsAtOnce}`),
  chunkText("SPILL.TERM: data longer than its size", chunks, `5\r\nhelloworld\r\n${endsAtOnce}`),
  chunkText("a bare LF behind the data", chunks, `5\r\nhello\n${endsAtOnce}`),
  chunkText("a bare LF behind the last chunk", chunks, `0\n\n${smuggled}`),
  chunkText("trailers that end in bare LFs", garden, `0\r\nX: y\n\n${smuggled}`),
  chunkText("an obs-fold in trailers", garden, `0\r\nX: y\r\n z\r\n\r\n${smuggled}`),
  chunkText("a request line as a trailer", garden, `0\r\n${smuggled}`),
  chunkText("a space in a trailer's name", rfc("7.1.2"), `0\r\nX : y\r\n\r\n${smuggled}`),
  {
    name: "chunks: an extension",
    source: rfc("7.1.1"),
    text: post(chunked, `${smuggled.length.toString(16)};a="b"\r\n${smuggled}\r\n0\r\n\r\n`),
    expected: { taken: 1 },
  },
  {
    name: "chunks: a size of more than 32 bits, whose rest is waited for",
    source: klein,
    text: post(chunked, `100000000\r\nhello\r\n${endsAtOnce}`),
    expected: { taken: 0 },
  },
  chunkText("a length as a trailer", "RFC 9110 §6.5.1", `0\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`),
  chunkText("a coding as a trailer", "RFC 9110 §6.5.1", `0\r\nTransfer-Encoding: chunked\r\n\r\n${endsAtOnce}`),
];

const lines: readonly SmugglingEntry[] = [
  { name: "HTTP/0.9", source: linhart, text: `GET /\r\n\r\n${smuggled}`, expected: refused("426 low_version") },
  {
    name: "HTTP/1.0 with chunks",
    source: rfc("6.1"),
    text: `POST / HTTP/1.0\r\nHost: a\r\n${chunked}\r\n${endsAtOnce}`,
    expected: refused("426 low_version"),
  },
  {
    name: "HTTP/1.1 with a space behind",
    source: tReqs,
    text: `GET / HTTP/1.1 \r\nHost: a\r\n\r\n`,
    expected: refused(malformed),
  },
  {
    name: "a version of two digits",
    source: tReqs,
    text: `GET / HTTP/1.10\r\nHost: a\r\n\r\n`,
    expected: refused(malformed),
  },
  {
    name: "a space in the target",
    source: rfc("3"),
    text: `GET /a /b HTTP/1.1\r\nHost: a\r\n\r\n`,
    expected: refused(malformed),
  },
  {
    name: "a tab as the blank of the request line",
    source: tReqs,
    text: `GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n`,
    expected: refused("400 http1.invalid_characters"),
  },
  {
    name: "a request line that ends in a bare CR",
    source: rfc("2.2"),
    text: `GET / HTTP/1.1\rHost: a\r\n\r\n`,
    expected: refused("400 http1.bare_cr"),
  },
  {
    name: "a head of bare LFs",
    source: rfc("2.2"),
    text: `GET / HTTP/1.1\nHost: a\n\n${smuggled}`,
    expected: refused("400 http1.bare_lf"),
  },
  {
    name: "a header before the first line's end",
    source: rfc("2.2"),
    text: `GET / HTTP/1.1\r\n Host: b\r\nHost: a\r\n\r\n`,
    expected: refused("400 http1.obs_fold"),
  },
  {
    name: "a NUL in a header's name",
    source: "CVE-2021-43797 of Netty",
    text: `GET / HTTP/1.1\r\nHost: a\r\nX\0: y\r\n\r\n`,
    expected: refused("400 http1.invalid_characters"),
  },
  {
    name: "a line without a colon",
    source: "CVE-2019-20444 of Netty",
    text: post(`${lengthOf(smuggled)}no colon\r\n`, smuggled),
    expected: refused(malformed),
  },
  {
    name: "an empty name",
    source: garden,
    text: `GET / HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n`,
    expected: refused(malformed),
  },
  {
    name: "two Hosts",
    source: rfc("3.2"),
    text: `GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n`,
    expected: refused("400 http1.multiple_host_headers"),
  },
  {
    name: "absolute form against Host",
    source: rfc("3.2.2"),
    text: `GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n`,
    expected: { taken: 1 },
  },
  {
    name: "a user in the authority",
    source: "RFC 9110 §4.2.4",
    text: `GET http://a@b/ HTTP/1.1\r\nHost: a\r\n\r\n`,
    expected: refused("400 http1.invalid_url"),
  },
  {
    name: "a Host with a path",
    source: rfc("3.2"),
    text: `GET / HTTP/1.1\r\nHost: a/b?c\r\n\r\n`,
    expected: refused("400 http.invalid_authority"),
  },
  {
    name: "Connection takes Content-Length off",
    source: "Davison: Abusing HTTP Hop-by-hop Request Headers (2019)",
    text: post(`${lengthOf(smuggled)}Connection: close, Content-Length\r\n`, smuggled),
    expected: refused("400 http1.connection_header_rejected"),
  },
  {
    name: "Connection takes Host off",
    source: "Davison: Abusing HTTP Hop-by-hop Request Headers (2019)",
    text: `GET / HTTP/1.1\r\nHost: a\r\nConnection: host\r\n\r\n`,
    expected: refused("400 http1.connection_header_rejected"),
  },
  {
    name: "h2c: an upgrade that a back end may take",
    source: "Zeman, Bishop Fox: h2c Smuggling (2020)",
    text: `GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n`,
    expected: { taken: 1 },
  },
  {
    name: "CONNECT with a body",
    source: "RFC 9110 §9.3.6",
    text: `CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n${lengthOf(smuggled)}\r\n${smuggled}`,
    expected: refused("400 http1.body_disallowed"),
  },
  {
    name: "the preface of HTTP/2",
    source: "RFC 9113 §3.4",
    text: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    expected: refused(malformed),
  },
];

/** Empty lines before a request are skipped (RFC 9112 §2.2); the second request is the client's own. */
const pipelines: readonly SmugglingEntry[] = [
  {
    name: "a body with a request in it, then a request",
    source: browsers,
    text: `${post(lengthOf(smuggled), smuggled)}GET /own HTTP/1.1\r\nHost: a\r\n\r\n`,
    expected: { taken: 2 },
  },
  {
    name: "chunks with a request in them, then a request",
    source: browsers,
    text: `${post(chunked, `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`)}GET /own HTTP/1.1\r\nHost: a\r\n\r\n`,
    expected: { taken: 2 },
  },
  {
    name: "a sound request, then a contradiction",
    source: browsers,
    text: `GET /own HTTP/1.1\r\nHost: a\r\n\r\n${post(`${lengthOf(endsAtOnce)}${chunked}`, endsAtOnce)}`,
    expected: refused(both, 1),
  },
  {
    name: "bytes that continue a request of another",
    source: desync,
    text: `${post("Content-Length: 3\r\n", "abc")}xGET /own HTTP/1.1\r\nHost: a\r\n\r\n`,
    expected: refused(malformed, 1),
  },
];

export const smugglingCorpus: readonly SmugglingEntry[] = [
  ...contradictions,
  ...codings,
  ...lengths,
  ...chunkFraming,
  ...lines,
  ...pipelines,
];
