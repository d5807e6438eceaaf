/** An expression in the subset of FHIRPath (http://hl7.org/fhirpath/N1) that the invariants of R4 use. */
export type Expression =
  | { readonly kind: 'literal'; readonly value: string | number | boolean }
  | { readonly kind: 'this' }
  | { readonly kind: 'variable'; readonly name: string }
  | { readonly kind: 'child'; readonly of: Expression; readonly name: string }
  | {
      readonly kind: 'call'
      readonly of: Expression
      readonly name: string
      readonly args: readonly Expression[]
    }
  | {
      readonly kind: 'binary'
      readonly operator: string
      readonly left: Expression
      readonly right: Expression
    }

/** The operators from the lowest precedence to the highest. */
const PRECEDENCE: readonly (readonly string[])[] = [
  ['implies'],
  ['or', 'xor'],
  ['and'],
  ['in', 'contains'],
  ['=', '!='],
  ['<=', '>=', '<', '>'],
  ['|'],
  ['is', 'as'],
  ['+', '&'],
]

const TOKEN =
  /\s*(?:('(?:[^'\\]|\\.)*')|(\d+(?:\.\d+)?)|([$%]?[A-Za-z]\w*|`[^`]+`)|(<=|>=|!=|[.()=<>|+&,]))\s*/y

/** Throws if the expression is not in the subset. */
export function parseExpression(text: string): Expression {
  const tokens = listTokens(text)
  const parser = new Parser(tokens)
  const expression = parser.readBinary(0)
  if (!parser.isAtEnd()) throw new Error(`Cannot parse ${text}`)
  return expression
}

function listTokens(text: string): readonly string[] {
  const tokens: string[] = []
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < text.length) {
    const found = TOKEN.exec(text)
    if (!found) throw new Error(`Cannot parse ${text}`)
    tokens.push(found[0].trim())
  }
  return tokens
}

const THIS: Expression = { kind: 'this' }

class Parser {
  readonly #tokens: readonly string[]
  #at = 0

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens
  }

  isAtEnd(): boolean {
    return this.#at === this.#tokens.length
  }

  readBinary(level: number): Expression {
    const operators = PRECEDENCE[level]
    if (!operators) return this.#readPath()
    let left = this.readBinary(level + 1)
    for (;;) {
      const operator = operators.find(it => this.#takes(it))
      if (operator === undefined) return left
      left = { kind: 'binary', operator, left, right: this.readBinary(level + 1) }
    }
  }

  #readPath(): Expression {
    let path = this.#readTerm()
    while (this.#takes('.')) path = this.#readMember(path)
    return path
  }

  #readTerm(): Expression {
    const token = this.#tokens[this.#at] ?? ''
    if (token === '(') {
      this.#at++
      const inner = this.readBinary(0)
      this.#expect(')')
      return inner
    }
    const literal = readLiteral(token)
    if (literal === undefined) return this.#readMember(THIS)
    this.#at++
    return literal
  }

  #readMember(of: Expression): Expression {
    const name = (this.#tokens[this.#at++] ?? '').replaceAll('`', '')
    if (!/^[A-Za-z]/.test(name)) throw new Error(`Cannot parse an expression at ${name}`)
    if (!this.#takes('(')) return { kind: 'child', of, name }
    const args: Expression[] = []
    while (!this.#takes(')')) {
      args.push(this.readBinary(0))
      this.#takes(',')
    }
    return { kind: 'call', of, name, args }
  }

  #takes(token: string): boolean {
    const isNext = this.#tokens[this.#at] === token
    if (isNext) this.#at++
    return isNext
  }

  #expect(token: string): void {
    if (!this.#takes(token)) throw new Error(`Cannot parse an expression: ${token} is missing`)
  }
}

function readLiteral(token: string): Expression | undefined {
  if (token === '$this') return THIS
  if (token.startsWith('%')) return { kind: 'variable', name: token.slice(1) }
  if (token === 'true' || token === 'false') return { kind: 'literal', value: token === 'true' }
  if (/^\d/.test(token)) return { kind: 'literal', value: Number(token) }
  if (!token.startsWith("'")) return undefined
  return { kind: 'literal', value: token.slice(1, -1).replace(/\\(.)/g, '$1') }
}
