/**
 * The part of FHIRPath that FHIRPath Patch is served with (R4 fhirpatch.html): child names, indexers, `first()`,
 * `last()`, `ofType()` and `where()` with equalities.
 */
export interface PatchPath {
  /** The resource type that the path begins with. */
  readonly root: string
  readonly steps: readonly PatchStep[]
}

export type PatchStep =
  | { readonly kind: 'child'; readonly name: string }
  /** -1 for the last. */
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'type'; readonly type: string }
  | { readonly kind: 'where'; readonly conditions: readonly PatchCondition[] }

/** `code.coding.code = 'x'` */
export interface PatchCondition {
  readonly names: readonly string[]
  readonly value: string | number | boolean
}

const TOKEN = /\s*(?:('(?:[^'\\]|\\.)*')|([A-Za-z]\w*)|(-?\d{1,15}(?:\.\d{1,15})?)|([.[\]()=]))/y

interface Token {
  readonly kind: 'text' | 'name' | 'number' | 'sign'
  readonly text: string
}

/** Undefined when the path is not in this part of FHIRPath. */
export function parsePatchPath(text: string): PatchPath | undefined {
  const tokens = listTokens(text.trim())
  const root = tokens?.[0]
  if (!tokens || root?.kind !== 'name' || !/^[A-Z]/.test(root.text)) return undefined
  const steps = new Reader(tokens.slice(1)).readSteps()
  return steps && { root: root.text, steps }
}

function listTokens(text: string): readonly Token[] | undefined {
  const tokens: Token[] = []
  const pattern = new RegExp(TOKEN)
  while (pattern.lastIndex < text.length) {
    const found = pattern.exec(text)
    if (!found) return undefined
    const [, quoted, name, number, sign = ''] = found
    if (quoted !== undefined)
      tokens.push({ kind: 'text', text: quoted.slice(1, -1).replaceAll(/\\(.)/g, '$1') })
    else if (name !== undefined) tokens.push({ kind: 'name', text: name })
    else if (number !== undefined) tokens.push({ kind: 'number', text: number })
    else tokens.push({ kind: 'sign', text: sign })
  }
  return tokens
}

/** Parses steps from tokens. Every method returns undefined if the tokens do not fit. */
class Reader {
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  readSteps(): readonly PatchStep[] | undefined {
    const steps: PatchStep[] = []
    while (this.#at < this.#tokens.length) {
      const read = this.#takes('[') ? this.#readIndex() : this.#takes('.') ? this.#readMember() : undefined
      if (!read) return undefined
      steps.push(...read)
    }
    return steps
  }

  #readIndex(): readonly PatchStep[] | undefined {
    const index = this.#take('number')
    const isWhole = index !== undefined && /^\d+$/.test(index)
    return isWhole && this.#takes(']') ? [{ kind: 'index', index: Number(index) }] : undefined
  }

  #readMember(): readonly PatchStep[] | undefined {
    const name = this.#take('name')
    if (name === undefined) return undefined
    return this.#takes('(') ? this.#readFunction(name) : [{ kind: 'child', name }]
  }

  #readFunction(name: string): readonly PatchStep[] | undefined {
    const steps = this.#readArguments(name)
    return this.#takes(')') ? steps : undefined
  }

  #readArguments(name: string): readonly PatchStep[] | undefined {
    switch (name) {
      case 'first':
        return [{ kind: 'index', index: 0 }]
      case 'last':
        return [{ kind: 'index', index: -1 }]
      case 'ofType':
      case 'as': {
        const type = this.#take('name')
        return type === undefined ? undefined : [{ kind: 'type', type }]
      }
      case 'extension': {
        const url = this.#take('text')
        if (url === undefined) return undefined
        const conditions = [{ names: ['url'], value: url }]
        return [
          { kind: 'child', name: 'extension' },
          { kind: 'where', conditions },
        ]
      }
      case 'where': {
        const conditions = this.#readConditions()
        return conditions && [{ kind: 'where', conditions }]
      }
      default:
        return undefined
    }
  }

  #readConditions(): readonly PatchCondition[] | undefined {
    const conditions: PatchCondition[] = []
    do {
      const names = this.#readNames()
      const value = names && this.#takes('=') ? this.#readLiteral() : undefined
      if (!names || value === undefined) return undefined
      conditions.push({ names, value })
    } while (this.#takes('and'))
    return conditions
  }

  #readNames(): readonly string[] | undefined {
    const names: string[] = []
    do {
      const name = this.#take('name')
      if (name === undefined) return undefined
      names.push(name)
    } while (this.#takes('.'))
    return names
  }

  #readLiteral(): PatchCondition['value'] | undefined {
    const token = this.#tokens[this.#at++]
    if (token?.kind === 'text') return token.text
    if (token?.kind === 'number') return Number(token.text)
    return token?.text === 'true' ? true : token?.text === 'false' ? false : undefined
  }

  #take(kind: Token['kind']): string | undefined {
    const token = this.#tokens[this.#at]
    if (token?.kind !== kind) return undefined
    this.#at++
    return token.text
  }

  #takes(text: string): boolean {
    const token = this.#tokens[this.#at]
    const isIt = token?.text === text && token.kind !== 'text'
    if (isIt) this.#at++
    return isIt
  }
}
