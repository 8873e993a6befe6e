// Makers of operators that most of the table needs.
import type { FormatValue, OperatorCompiler } from "./operator.ts";

export const text = (value: FormatValue): OperatorCompiler => {
  return (argument) => (argument === undefined ? { value, isNumber: false } : { error: "takes no argument" });
};

export const number = (value: FormatValue): OperatorCompiler => {
  return (argument) => (argument === undefined ? { value, isNumber: true } : { error: "takes no argument" });
};

export const ofOptional = (value: string | undefined): string | undefined => (value === "" ? undefined : value);
