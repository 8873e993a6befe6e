/** Formats of access logs: which no proxy would take, and where queries stand in them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatProblem, withoutSecretQueries } from "./log-format.ts";

const refused: readonly (readonly [string, RegExp])[] = [
  ["50 % off", /position 3/],
  ["%RESPONSE_CODE", /position 0/],
  ["%RESPONSE_COD%", /did you mean %RESPONSE_CODE%/],
  ["%REQ%", /needs a name/],
  ["%REQ()%", /needs a name/],
  ["%PROTOCOL(a)%", /takes nothing/],
  ["%COALESCE%", /needs a name/],
  ["%COALESCE(a)%", /is written with/],
  ['%COALESCE({"operators":[]})%', /is written with/],
  ['%COALESCE({"operators":[1]})%', /is written with/],
  ['%COALESCE({"operators":["PROTOCOL","PROTOCO"]})%', /did you mean %PROTOCOL%/],
  ['%COALESCE({"operators":[{"command":"REQ_WITHOUT_QUERY","param":":path"}]})%', /cannot hold/],
];

for (const [text, problem] of refused) {
  test(`refused: ${text}`, () => assert.match(formatProblem(text) ?? "", problem));
}

const taken = [
  "",
  "100%%",
  "%REQ(X-A?B):12%",
  "%START_TIME(%Y)%",
  "%CEL(size(request.path))%",
  "%TYPED_CEL(size(request.path))%",
  "%PATH(NQ:ORIG)%",
  "%QUERY_PARAMS% %QUERY_PARAMS(ORIG)%",
  "%TRACE_ID% %SPAN_ID% %LISTENER_NAME%",
  '%COALESCE({"operators":["SPAN_ID",{"command":"REQ","param":"X-A"}]}):9%',
];

for (const text of taken) {
  test(`taken: ${text}`, () => assert.equal(formatProblem(text), undefined));
}

const redacted: readonly (readonly [string, string])[] = [
  ["%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%", "%REQ_WITHOUT_QUERY(X-ENVOY-ORIGINAL-PATH?:PATH)%"],
  ["a %REQUEST_HEADER(Referer):20% %%", "a %REQ_WITHOUT_QUERY(Referer):20% %%"],
  ["%REQ(X-A?:path)%", "%REQ_WITHOUT_QUERY(X-A?:path)%"],
  ["%PATH% %PATH(WQ:PATH)%", "%REQ_WITHOUT_QUERY(X-ENVOY-ORIGINAL-PATH?:PATH)% %REQ_WITHOUT_QUERY(:PATH)%"],
  ["%QUERY_PARAM(Code)% %QUERY_PARAM(page)%", "redacted %QUERY_PARAM(page)%"],
  ["%QUERY_PARAMS% %QUERY_PARAMS(ORIG):9%", "redacted redacted"],
  ['%COALESCE({"operators":["SPAN_ID","PROTOCOL"]})%', '%COALESCE({"operators":["SPAN_ID","PROTOCOL"]})%'],
  [
    '%COALESCE({"operators":["PATH","QUERY_PARAMS",{"command":"REQ","param":":path"},"PROTOCOL"]}):9%',
    '%COALESCE({"operators":["PROTOCOL"]}):9%',
  ],
  ['%COALESCE({"operators":[{"command":"QUERY_PARAM","param":"code"}]})%', "redacted"],
  ["%PATH(NQ)% %REQ(USER-AGENT)% %RESP(LOCATION)%", "%PATH(NQ)% %REQ(USER-AGENT)% redacted"],
  ["%REQ(Authorization):9% %REQ(X-A?COOKIE)% %RESP(SET-COOKIE)% %RESP(X-A)%", "redacted redacted redacted %RESP(X-A)%"],
  ["%REQ_WITHOUT_QUERY(COOKIE)% %TRAILER(SET-COOKIE)%", "redacted redacted"],
  ["%CEL(request.path)% %TYPED_CEL(request . query)% %CEL(request.headers)%", "redacted redacted redacted"],
  ["%CEL(request.headers['Cookie'])% %CEL(response.headers.location)%", "redacted redacted"],
  ["%CEL(request.headers[request.method])% %CEL(request.headers[':path'])%", "redacted redacted"],
  ["%CEL(request.url_path)% %CEL(request.headers['x-a'])%", "%CEL(request.url_path)% %CEL(request.headers['x-a'])%"],
];

test("what Tulle's proxy leaves out itself stays", () => {
  const text = "%RESP(LOCATION)% %CEL(request.path)%";
  assert.equal(withoutSecretQueries(`${text} %RESP(SET-COOKIE)%`, ["code"], true), `${text} redacted`);
});

for (const [text, expected] of redacted) {
  test(`without secrets: ${text}`, () => {
    assert.equal(withoutSecretQueries(text, ["code"]), expected);
    assert.equal(withoutSecretQueries(text, []), text);
  });
}
