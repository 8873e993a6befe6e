// Values that stand in no log, and those that do.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { SubstitutionFormatStringSchema } from "@tulle/xds/envoy/config/core/v3/substitution_format_string_pb";
import { compileFormatString } from "../fields/compile-format-string.ts";
import { Place, Problems } from "../fields/problems.ts";
import { HeaderMap } from "../http/header-map.ts";
import type { ResponseHead } from "../http/message.ts";
import { requestHead, streamInfo } from "../testing/from-configuration.ts";
import { redactQuery } from "./redact-query.ts";
import { compileTextFormat } from "./substitution-format.ts";

const names = new Set(["code", "state", "access_token"]);
for (const [path, expected] of [
  ["/a", "/a"],
  ["/a?", "/a?"],
  ["/a?q=1&code=secret", "/a?q=1&code=redacted"],
  ["/a?code=s&state=t#x", "/a?code=redacted&state=redacted"],
  ["/a?CODE=s&%63ode=t&c%6Fde=u", "/a?CODE=redacted&%63ode=redacted&c%6Fde=redacted"],
  ["/a?x=1;access_token=s", "/a?x=1;access_token=redacted"],
  ["/a??code=s", "/a??code=redacted"],
  ["/a?code=a=b&codes=c&code", "/a?code=redacted&codes=c&code"],
  ["/a?x=%&%=1&code=s", "/a?x=%&%=1&code=redacted"],
  ["/code=s?x=y", "/code=s?x=y"],
] as const) {
  test(`in a log: ${path}`, () => assert.equal(redactQuery(path, names), expected));
}

test("a long query costs its length: by the square of it this would take half an hour", () => {
  const length = 1_000_000;
  for (const query of ["a", "%", "?", "+", "&", "="].map((character) => character.repeat(length))) {
    assert.equal(redactQuery(`/a?${query}`, names), `/a?${query}`);
    assert.equal(redactQuery(`/a?code=s&${query}`, names), `/a?code=redacted&${query}`);
  }
});

test("the formatter's name says which parameters are left out, where Envoy leaves out the whole query", () => {
  const format = (name: string): string => {
    const message = create(SubstitutionFormatStringSchema, {
      format: {
        case: "textFormatSource",
        value: { specifier: { case: "inlineString", value: "%REQ_WITHOUT_QUERY(X-ENVOY-ORIGINAL-PATH?:PATH)%" } },
      },
      formatters: [
        {
          name,
          typedConfig: {
            typeUrl: "type.googleapis.com/envoy.extensions.formatter.req_without_query.v3.ReqWithoutQuery",
          },
        },
      ],
    });
    assert.ok(toBinary(SubstitutionFormatStringSchema, message).length > 0);
    const problems = new Problems();
    const request = requestHead({ path: "/a?q=1&code=secret" });
    const compiled = compileFormatString(message, { environment: {}, hostname: "" }, Place.root, problems);
    assert.deepEqual(problems.list, []);
    return compiled(streamInfo(request), request, undefined);
  };
  assert.equal(format("tulle.redacted_query:code,state"), "/a?q=1&code=redacted");
  assert.equal(format("envoy.formatter.req_without_query"), "/a");
});

for (const { format, expected } of [
  { format: "%REQ(:PATH)%", expected: "/a?code=redacted&b=1" },
  { format: "%REQ(X-NONE?REFERER)%", expected: "http://a/?code=redacted" },
  { format: "%REQ_WITHOUT_QUERY(:PATH)%", expected: "/a?code=redacted&b=1" },
  { format: "%PATH%", expected: "/a?code=redacted&b=1" },
  { format: "%PATH(NQ)%", expected: "/a" },
  { format: "%QUERY_PARAM(code)% %QUERY_PARAM(b)%", expected: "redacted 1" },
  { format: "%QUERY_PARAMS%", expected: "code=redacted&b=1" },
  { format: "%CEL(request.path)% %CEL(request.query)%", expected: "/a?code=redacted&b=1 code=redacted&b=1" },
  { format: '%COALESCE({"operators":[{"command":"REQ","param":":path"}]})%', expected: "/a?code=redacted&b=1" },
  { format: "%RESP(LOCATION)%", expected: "/b?code=redacted" },
]) {
  test(`no operator shows what is left out: ${format}`, () => {
    const head = requestHead({ path: "/a?code=secret&b=1" });
    head.headers.set("referer", "http://a/?code=secret");
    const response = { status: 302, reason: "", headers: new HeaderMap(["location", "/b?code=secret"]) };
    const environment = { environment: {}, hostname: "h", redactedParameters: new Set(["code"]) };
    const compiled = compileTextFormat(format, "-", environment, Place.root, new Problems());
    assert.equal(compiled(streamInfo(head), head, response as unknown as ResponseHead), expected);
  });
}
