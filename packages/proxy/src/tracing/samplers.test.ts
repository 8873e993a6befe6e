// Samplers that are refused when they come, with their place, and resource detectors. What the others decide is
// compared with Envoy in samplers-parity.test.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ExprSchema } from "@tulle/xds/cel/expr/syntax_pb";
import { CelExpressionSchema } from "@tulle/xds/xds/type/v3/cel_pb";
import { TypedExtensionConfigSchema } from "@tulle/xds/envoy/config/core/v3/extension_pb";
import { treeOfExpression } from "../cel/expression-tree.ts";
import { detachedScope } from "../fields/compile-scope.ts";
import { Place, Problems, problemText } from "../fields/problems.ts";
import { extension } from "../testing/envoy-json.ts";
import { fromConfiguration } from "../testing/from-configuration.ts";
import { detectResource } from "./resource-detectors.ts";
import { compileSampler } from "./samplers.ts";

const sampler = (type: string, config: object): object => ({
  name: "named",
  typed_config: { "@type": extension(`tracers.opentelemetry.samplers.v3.${type}`), ...config },
});
const alwaysOn = sampler("AlwaysOnSamplerConfig", {});
const cel = (expression: object): object => sampler("CELSamplerConfig", { expression });
const parsed = (expr: object): object => cel({ cel_expr_parsed: { expr } });
const wrap = (inner: object): object => sampler("ParentBasedSamplerConfig", { wrapped_sampler: inner });

function nested(levels: number, innermost: object, around: (inner: object) => object): object {
  let made = innermost;
  for (let level = 0; level < levels; level += 1) made = around(made);
  return made;
}

const refused: readonly { readonly name: string; readonly config: object; readonly problem: RegExp }[] = [
  { name: "unknown", config: { name: "named" }, problem: /sampler 'named' is not supported/ },
  {
    name: "another extension",
    config: sampler("CELSamplerConfig", {}),
    problem: /typed_config\.expression: is not set: a parsed or a checked one is required/,
  },
  { name: "an expression as text", config: cel({ cel_expr_string: "true" }), problem: /is not set/ },
  { name: "an empty part", config: parsed({}), problem: /a part is empty/ },
  { name: "no operand", config: parsed({ select_expr: { field: "a" } }), problem: /a part is empty/ },
  {
    name: "an operator without operands",
    config: parsed({ call_expr: { function: "_==_" } }),
    problem: /function _==_/,
  },
  { name: "an unknown function", config: parsed({ call_expr: { function: "constructor" } }), problem: /constructor/ },
  { name: "an unknown name", config: parsed({ ident_expr: { name: "__proto__" } }), problem: /attribute __proto__/ },
  { name: "a macro", config: parsed({ comprehension_expr: {} }), problem: /macros but has/ },
  { name: "a map", config: parsed({ struct_expr: {} }), problem: /maps and messages/ },
  { name: "bytes", config: parsed({ const_expr: { bytes_value: "YQ==" } }), problem: /texts of bytes/ },
  { name: "nothing wrapped", config: sampler("ParentBasedSamplerConfig", {}), problem: /wrapped_sampler: sampler ''/ },
  {
    name: "too many samplers within each other",
    config: nested(5, alwaysOn, wrap),
    problem: /more than 4 samplers within each other/,
  },
];

for (const { name, config, problem } of refused) {
  test(`refused: ${name}`, () => {
    const problems = new Problems();
    const message = fromConfiguration(TypedExtensionConfigSchema, config);
    assert.equal(compileSampler(message, Place.root.field("sampler"), problems), undefined);
    assert.match(problems.list.map((each) => problemText(each)).join("\n"), problem);
  });
}

test("refused: an expression of too many levels", () => {
  let expr = create(ExprSchema, { exprKind: { case: "identExpr", value: { name: "a" } } });
  for (let level = 0; level < 300; level += 1) {
    expr = create(ExprSchema, { exprKind: { case: "callExpr", value: { function: "!_", args: [expr] } } });
  }
  const tree = treeOfExpression(create(CelExpressionSchema, { celExprParsed: { expr } }));
  assert.deepEqual(tree, { ok: false, reason: "there are more than 256 levels" });
});

test("resource detectors: the last of a name holds, what is not sound is left out", () => {
  const detector = (type: string, config: object = {}): object => ({
    name: "named",
    typed_config: { "@type": extension(`tracers.opentelemetry.resource_detectors.v3.${type}`), ...config },
  });
  const detect = (environment: string, ...configs: readonly object[]): unknown => {
    const problems = new Problems();
    const messages = configs.map((config) => fromConfiguration(TypedExtensionConfigSchema, config));
    const scope = { ...detachedScope(), environment: { OTEL_RESOURCE_ATTRIBUTES: environment } };
    const found = new Map(detectResource(messages, scope, Place.root, problems));
    return problems.list.length > 0 ? problems.list.map((each) => problemText(each)) : Object.fromEntries(found);
  };
  const ofEnvironment = detector("EnvironmentResourceDetectorConfig");
  const ofConfig = detector("StaticConfigResourceDetectorConfig", { attributes: { a: "of the configuration", b: "" } });
  assert.deepEqual(detect("a=1,b=%20x, c=d=e,f", ofEnvironment), { a: "1", b: " x", c: "d=e" });
  assert.deepEqual(detect("a=1,b=%zz", ofEnvironment), {});
  assert.deepEqual(detect("a=1,b=2", ofEnvironment, ofConfig), { a: "of the configuration", b: "2" });
  assert.deepEqual(detect("a=1", ofConfig, ofEnvironment), { a: "1" });
  assert.match(String(detect("", { name: "named" })), /resource detector 'named' is not supported/);
});
