/**
 * The part of FHIRPath that R4 search expressions are written in. Alternatives are paths; a path is a list of
 * steps that start at the resource.
 */
export interface Path {
  /** The type that the expression starts with, `Resource` for any. */
  readonly root: string
  readonly steps: readonly Step[]
}

export type Step =
  | { readonly kind: 'element'; readonly name: string }
  /** `ofType(Quantity)`, `as Quantity`: of a choice element, the one of this type. */
  | { readonly kind: 'type'; readonly type: string }
  | { readonly kind: 'index'; readonly index: number }
  /** `where(system='phone')` */
  | { readonly kind: 'equals'; readonly name: string; readonly value: string }
  /** `where(resolve() is Patient)`: a reference to this type. */
  | { readonly kind: 'refers'; readonly type: string }
  /** `exists() and … != false`, of `Patient.deceased`: one boolean. */
  | { readonly kind: 'present' }

const steps: readonly (readonly [RegExp, (found: RegExpExecArray) => Step])[] = [
  [/^\.?(?:ofType|as)\((\w+)\)/, found => ({ kind: 'type', type: found[1] ?? '' })],
  [/^\s+as\s+(\w+)/, found => ({ kind: 'type', type: found[1] ?? '' })],
  [/^\[(\d+)\]/, found => ({ kind: 'index', index: Number(found[1]) })],
  [
    /^\.where\((\w+)\s*=\s*'([^']*)'\)/,
    found => ({ kind: 'equals', name: found[1] ?? '', value: found[2] ?? '' }),
  ],
  [/^\.where\(resolve\(\) is (\w+)\)/, found => ({ kind: 'refers', type: found[1] ?? '' })],
  [/^\.(\w+)(?!\()\b/, found => ({ kind: 'element', name: found[1] ?? '' })],
]

const present = /^([\w.]+)\.exists\(\) and \1 != false$/

/** Undefined when the expression is not in this part of FHIRPath. */
export function parsePath(expression: string): readonly Path[] | undefined {
  const paths = expression.split('|').map(it => parseAlternative(it.trim()))
  return paths.every(it => it !== undefined) ? paths : undefined
}

function parseAlternative(text: string): Path | undefined {
  const subject = present.exec(text)?.[1]
  if (subject === undefined) return parseSteps(withoutParentheses(text))
  const path = parseSteps(subject)
  return path === undefined ? undefined : { root: path.root, steps: [...path.steps, { kind: 'present' }] }
}

/** `(Observation.value as CodeableConcept).text`: the parentheses only bind what is in front anyway. */
function withoutParentheses(text: string): string {
  return text.replace(/^\(([^|]*?)\)(?=$|\.|\[)/, '$1')
}

function parseSteps(text: string): Path | undefined {
  const root = /^[A-Z]\w*/.exec(text)?.[0]
  if (root === undefined) return undefined
  const found: Step[] = []
  let rest = text.slice(root.length)
  while (rest !== '') {
    const step = parseStep(rest)
    if (step === undefined) return undefined
    found.push(step.step)
    rest = rest.slice(step.length)
  }
  return { root, steps: found }
}

function parseStep(text: string): { readonly step: Step; readonly length: number } | undefined {
  for (const [pattern, read] of steps) {
    const found = pattern.exec(text)
    if (found !== null) return { step: read(found), length: found[0].length }
  }
  return undefined
}
