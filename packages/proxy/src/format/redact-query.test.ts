// Values that stand in no log, and those that do.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { SubstitutionFormatStringSchema } from "@tulle/xds/envoy/config/core/v3/substitution_format_string_pb";
import { tries } from "../../../../tests/tools/tries.ts";
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
  ["/a#access_token=s&x=1", "/a#access_token=redacted&x=1"],
  ["/a?x=1#access_token=s?t;u", "/a?x=1#access_token=redacted"],
  ["/a#?code=s", "/a#?code=redacted"],
  ["/a?code=s;t?u#v&x=1", "/a?code=redacted&x=1"],
  ["/a?code[]=s&code%5B0%5D=t&[code]=u", "/a?code[]=redacted&code%5B0%5D=redacted&[code]=redacted"],
  [
    "/a?user[code]=s&user%5Bto%5D%5Bcode%5D=t&user[to]=u",
    "/a?user[code]=redacted&user%5Bto%5D%5Bcode%5D=redacted&user[to]=u",
  ],
  ["/a?+code=s&%20code%20=t", "/a?+code=redacted&%20code%20=redacted"],
  ["/a?to=/b?code=s&x=1", "/a?to=/b?code=redacted&x=1"],
  ["/a?to=%2Fb%3Fcode%3Ds%26x&x=%2Fb%3Fx%3D1", "/a?to=redacted&x=%2Fb%3Fx%3D1"],
  ["/a?to=%2Fb%3Fto%3D%252Fc%253Fcode%253Ds", "/a?to=redacted"],
  ["/a?to=%25252Fc%25253Fcode%25253Ds", "/a?to=redacted"],
  ["/a?to=%2525252525253Fcode%2525252525253Ds", "/a?to=redacted"],
  ["/to/http%3A%2F%2Fb%3Fcode%3Ds/x?x=1&code=t", "/to/http%3A%2F%2Fbredacted?x=1&code=redacted"],
  ["/to/b%253Fcode%253Ds", "/to/bredacted"],
  ["/to/b%3Fx%3Ds%23?x=1", "/to/b%3Fx%3Ds%23?x=1"],
  ["/a?to=%zz%3Fcode%3Ds&%zz%63ode=t", "/a?to=redacted&%zz%63ode=t"],
  ["/a?%ff;c%6fde=s", "/a?%ff;c%6fde=redacted"],
  ["/a?%3Fcode%3Ds", "/a?redacted"],
  ["/a?CODE=s&%63ode=t&c%6Fde=u", "/a?CODE=redacted&%63ode=redacted&c%6Fde=redacted"],
  ["/a?x=1;access_token=s;t&y", "/a?x=1;access_token=redacted&y"],
  ["/a??code=s", "/a??code=redacted"],
  ["/a?code=a=b&codes=c&code", "/a?code=redacted&codes=c&code"],
  ["/a?x=%&%=1&code=s", "/a?x=%&%=1&code=redacted"],
  ["/code=s?x=y", "/code=s?x=y"],
  ["/cb;code=s/next;a=b;%63ode=t?x=y", "/cb;code=redacted/next;a=b;%63ode=redacted?x=y"],
  ["/cb%3Bcode%3Ds/next?x=y", "/cbredacted?x=y"],
  ["/cb;x=1;y%3B;z", "/cb;x=1;y%3B;z"],
] as const) {
  test(`in a log: ${path}`, () => assert.equal(redactQuery(path, names), expected));
}

test("a long query costs its length: by the square of it the longest would take half an hour", () => {
  const length = tries({ short: 99_999, long: 999_999 });
  for (const query of ["a", "%", "?", "+", "&", "=", ";", "#", "[", "%25", "%&", "%=;", "a=%&"].map((part) =>
    part.repeat(length / part.length),
  )) {
    assert.equal(redactQuery(`/a?${query}`, names), `/a?${query}`);
    if (!/[?#%]/.test(query)) assert.equal(redactQuery(`/a;${query}`, names), `/a;${query}`);
    assert.equal(redactQuery(`/a?x&${query}=%`, names), `/a?x&${query}=%`);
    assert.equal(redactQuery(`/a?code=s&${query}`, names), `/a?code=redacted&${query}`);
  }
});

test("the formatter's name says which parameters are left out, where Envoy leaves out the whole query", () => {
  const format = (...formatters: readonly string[]): string => {
    const message = create(SubstitutionFormatStringSchema, {
      format: {
        case: "textFormatSource",
        value: { specifier: { case: "inlineString", value: "%REQ_WITHOUT_QUERY(X-ENVOY-ORIGINAL-PATH?:PATH)%" } },
      },
      formatters: formatters.map((name) => ({
        name,
        typedConfig: {
          typeUrl: "type.googleapis.com/envoy.extensions.formatter.req_without_query.v3.ReqWithoutQuery",
        },
      })),
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
  assert.equal(format("envoy.formatter.req_without_query", "tulle.redacted_query:code,state"), "/a");
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
  { format: "%REQ(AUTHORIZATION)% %REQ(X-API-KEY?:PATH)%", expected: "redacted /a?code=redacted&b=1" },
  { format: "%RESP(SET-COOKIE)% %STREAM_INFO_REQ(Authorization):3%", expected: "redacted red" },
  { format: "%CEL(request.headers['authorization'])%", expected: "redacted" },
  { format: "%CEL('authorization' in request.headers)%", expected: "true" },
  { format: "%CEL([request.path, 'x'])%", expected: '["/a?code=redacted&b=1","x"]' },
  { format: '%COALESCE({"operators":[{"command":"REQ","param":"authorization"}]})%', expected: "redacted" },
]) {
  test(`no operator shows what is left out: ${format}`, () => {
    const head = requestHead({ path: "/a?code=secret&b=1" });
    head.headers.set("referer", "http://a/?code=secret");
    head.headers.set("authorization", "Bearer secret");
    const response = {
      status: 302,
      reason: "",
      headers: new HeaderMap(["location", "/b?code=secret", "set-cookie", "secret"]),
    };
    const environment = { environment: {}, hostname: "h", redactedParameters: new Set(["code"]) };
    const compiled = compileTextFormat(format, "-", environment, Place.root, new Problems());
    assert.equal(compiled(streamInfo(head), head, response as unknown as ResponseHead), expected);
  });
}
