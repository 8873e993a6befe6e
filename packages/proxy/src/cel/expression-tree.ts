// Expressions of CEL that come as messages, parsed by whoever wrote them (xds.type.v3.CelExpression), as the tree that
// texts of CEL become. Envoy's samplers take no other form.
import { type BinaryOperator, type CelTree, type ParsedExpression } from "@tulle/telemetry/cel";
import type { Constant, Expr } from "@tulle/xds/cel/expr/syntax_pb";
import type { Constant as EarlierConstant, Expr as EarlierExpr } from "@tulle/xds/google/api/expr/v1alpha1/syntax_pb";
import type { CelExpression } from "@tulle/xds/xds/type/v3/cel_pb";
import type { FieldRows } from "../fields/field-row.ts";

const inText = "a text's places, which nobody is told of";
const checkersWord = "what a checker found out";

/** Rows of the two packages, which say the same. */
const rowsOf = (name: string): FieldRows => ({
  [`${name}.ParsedExpr`]: { used: "expr", harmless: { source_info: inText } },
  [`${name}.CheckedExpr`]: {
    used: "expr",
    harmless: {
      source_info: inText,
      reference_map: checkersWord,
      type_map: checkersWord,
      expr_version: checkersWord,
    },
  },
  [`${name}.Expr`]: {
    used: "const_expr ident_expr select_expr call_expr list_expr",
    harmless: { id: inText },
    told: "struct_expr comprehension_expr",
  },
  [`${name}.Expr.Ident`]: "name",
  [`${name}.Expr.Select`]: "operand field test_only",
  [`${name}.Expr.Call`]: "target function args",
  [`${name}.Expr.CreateList`]: "elements optional_indices",
  [`${name}.Constant`]: {
    used: "null_value bool_value int64_value uint64_value double_value string_value",
    told: "bytes_value duration_value timestamp_value",
  },
});

export const celExpressionFields: FieldRows = {
  "xds.type.v3.CelExpression": {
    used: "parsed_expr checked_expr cel_expr_parsed cel_expr_checked",
    told: "cel_expr_string",
  },
  ...rowsOf("cel.expr"),
  ...rowsOf("google.api.expr.v1alpha1"),
};

/** A tree is walked by calls within calls. */
const maxLevels = 256;

const binaryOperators: ReadonlyMap<string, BinaryOperator> = new Map<string, BinaryOperator>([
  ...(["||", "&&", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"] as const).map(
    (operator) => [`_${operator}_`, operator] as const,
  ),
  ["@in", "in"],
  ["_in_", "in"],
]);

/** Envoy takes the first that there is, checked before parsed, and no text (`CompiledExpression::Create`). */
export function treeOfExpression(message: CelExpression | undefined): ParsedExpression {
  const { celExprChecked, celExprParsed, exprSpecifier } = message ?? {};
  const expr = (celExprChecked ?? celExprParsed ?? exprSpecifier?.value)?.expr;
  if (expr === undefined) return { ok: false, reason: "is not set: a parsed or a checked one is required" };
  const reasons: string[] = [];
  const tree = treeOf(expr, 0, reasons);
  return reasons.length === 0 ? { ok: true, tree } : { ok: false, reason: reasons.join("; ") };
}

const nothing: CelTree = { type: "literal", value: null };

function treeOf(expr: Expr | EarlierExpr | undefined, level: number, reasons: string[]): CelTree {
  if (level > maxLevels) {
    reasons.push(`there are more than ${maxLevels} levels`);
    return nothing;
  }
  const below = (inner: Expr | EarlierExpr | undefined): CelTree => treeOf(inner, level + 1, reasons);
  const kind = expr?.exprKind;
  switch (kind?.case) {
    case "constExpr":
      return constantOf(kind.value, reasons);
    case "identExpr":
      return { type: "name", name: kind.value.name };
    case "selectExpr": {
      const select: CelTree = { type: "select", of: below(kind.value.operand), field: kind.value.field };
      return kind.value.testOnly ? { type: "call", name: "has", of: undefined, inputs: [select] } : select;
    }
    case "callExpr": {
      const { target, function: name, args } = kind.value;
      return callOf(name, target && below(target), args.map(below));
    }
    case "listExpr":
      if (kind.value.optionalIndices.length > 0) reasons.push("optional elements are not supported");
      return { type: "list", elements: kind.value.elements.map(below) };
    case "structExpr":
      reasons.push("maps and messages are not supported");
      return nothing;
    case "comprehensionExpr":
      reasons.push("macros but has are not supported");
      return nothing;
    case undefined:
      reasons.push("a part is empty");
      return nothing;
  }
}

/** Operators are calls of functions by names of their own. */
function callOf(name: string, of: CelTree | undefined, inputs: readonly CelTree[]): CelTree {
  const [first, second, third] = inputs;
  const operator = binaryOperators.get(name);
  if (operator !== undefined && first !== undefined && second !== undefined) {
    return { type: "binary", operator, left: first, right: second };
  }
  if (name === "!_" && first !== undefined) return { type: "not", of: first };
  if (name === "-_" && first !== undefined) return { type: "negate", of: first };
  if (name === "_[_]" && first !== undefined && second !== undefined) return { type: "index", of: first, key: second };
  if (name === "_?_:_" && first !== undefined && second !== undefined && third !== undefined) {
    return { type: "conditional", condition: first, whenTrue: second, whenFalse: third };
  }
  return { type: "call", name, of, inputs };
}

function constantOf({ constantKind }: Constant | EarlierConstant, reasons: string[]): CelTree {
  switch (constantKind.case) {
    case "nullValue":
      return nothing;
    case "boolValue":
    case "doubleValue":
    case "stringValue":
      return { type: "literal", value: constantKind.value };
    case "int64Value":
    case "uint64Value":
      return { type: "literal", value: Number(constantKind.value) };
    default:
      reasons.push("texts of bytes, durations and times are not supported");
      return nothing;
  }
}
