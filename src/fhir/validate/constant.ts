import type { Expression } from './parse-expression.ts'

/** The functions whose arguments are evaluated for each item of the collection, and not for the current item. */
const ITERATING: ReadonlySet<string> = new Set(['where', 'all', 'select', 'exists'])

/** Whether an expression has the same value for every item: it consists of variables and literals. */
export function isConstant(expression: Expression): boolean {
  switch (expression.kind) {
    case 'literal':
    case 'variable':
      return true
    case 'this':
      return false
    case 'child':
      return isConstant(expression.of)
    case 'binary':
      return isConstant(expression.left) && (namesType(expression) || isConstant(expression.right))
    case 'call':
      return (
        isConstant(expression.of) && (ITERATING.has(expression.name) || expression.args.every(isConstant))
      )
  }
}

/** `is` and `as`: the right side is the name of a type. */
function namesType({ operator }: { readonly operator: string }): boolean {
  return operator === 'is' || operator === 'as'
}

/** Whether its value depends on the value that an invariant is checked for (`%context`). */
export function usesContext(expression: Expression): boolean {
  switch (expression.kind) {
    case 'literal':
    case 'this':
      return false
    case 'variable':
      return expression.name === 'context'
    case 'child':
      return usesContext(expression.of)
    case 'binary':
      return usesContext(expression.left) || usesContext(expression.right)
    case 'call':
      return usesContext(expression.of) || expression.args.some(usesContext)
  }
}
