import { stripTypeScriptTypes } from 'node:module'

/** One small change to a source file, which a test should detect. */
export interface Mutant {
  /** Relative to the root of the repository. */
  readonly file: string
  readonly line: number
  readonly start: number
  readonly end: number
  readonly text: string
  /** The original text. */
  readonly was: string
}

const SWAPS: readonly (readonly [RegExp, (was: string) => readonly string[]])[] = [
  [/===/g, () => ['!==']],
  [/!==/g, () => ['===']],
  [/&&/g, () => ['||']],
  [/\|\|/g, () => ['&&']],
  [/\?\?(?!=)/g, () => ['&&']],
  [/ (?:<=|>=|<|>) /g, was => (was.includes('=') ? [was.replace('=', '')] : [`${was.trimEnd()}= `])],
  [/(?<![\w.?'])(?:true|false)(?![\w'])/g, was => [was === 'true' ? 'false' : 'true']],
  [/(?<=[\s([{,=:>&|])!(?=[\w(])/g, () => ['']],
  [/\.some\(/g, () => ['.every(']],
  [/\.every\(/g, () => ['.some(']],
  [/(?<=[([{,:?=\s>])'[^'\s]*'/g, () => ["'\\0'"]],
  // Not the ends of a character range (`0-9`), nor a constant column or limit in SQL.
  [/(?<![\w.'#$-]|SELECT |LIMIT )\d[\d_]*(?![\w'-])/g, was => [String(Number(was.replaceAll('_', '')) + 1)]],
]

/** Every mutant of a source file. Imports, types and comments are left alone. */
export function findMutants(file: string, source: string): readonly Mutant[] {
  const quiet = quietParts(source)
  const found: Mutant[] = []
  const add = (start: number, was: string, text: string) => {
    if (quiet.some(([from, to]) => start >= from && start < to)) return
    const line = source.slice(0, start).split('\n').length
    found.push({ file, line, start, end: start + was.length, text, was })
  }
  for (const [pattern, swap] of SWAPS)
    for (const match of source.matchAll(pattern))
      for (const text of swap(match[0])) add(match.index, match[0], text)
  for (const match of source.matchAll(/\bif \(/g)) {
    const start = match.index + match[0].length
    const condition = source.slice(start, closing(source, start))
    add(start, condition, 'true')
    add(start, condition, 'false')
  }
  return found.filter(mutant => changes(mutant, source)).sort((a, b) => a.start - b.start)
}

/** Whether the mutant changes more than types, and the result can be parsed. */
function changes({ start, end, text }: Mutant, source: string): boolean {
  try {
    const mutated = stripTypeScriptTypes(source.slice(0, start) + text + source.slice(end))
    return mutated.replaceAll(/\s+/g, ' ') !== stripTypeScriptTypes(source).replaceAll(/\s+/g, ' ')
  } catch {
    return false
  }
}

function closing(source: string, from: number): number {
  let depth = 1
  let at = from
  for (; depth > 0; at++) depth += source[at] === '(' ? 1 : source[at] === ')' ? -1 : 0
  return at - 1
}

const QUIET = [
  /\/\*[\s\S]*?\*\//g,
  /(?<![:'"\\])\/\/.*$/gm,
  /^import [\s\S]*?from '.*'$/gm,
  /^export (?:type )?\{[\s\S]*?\} from '.*'$/gm,
  /^(?:export )?interface \w+[\s\S]*?^\}$/gm,
  /^(?:export )?type \w+(?:<.*>)? =[\s\S]*?(?=\n\n|\n(?:export|function|const|\/\*\*))/gm,
  /(?<=throw new Error\().*$/gm,
]

function quietParts(source: string): readonly (readonly [number, number])[] {
  const parts = QUIET.flatMap(pattern => [...source.matchAll(pattern)])
  // Texts for people, which have spaces, decide nothing.
  const texts = [...source.matchAll(/'(?:[^'\\\n]|\\.)*'/g)].filter(([text]) => text.includes(' '))
  return [...parts, ...texts].map(({ index, 0: text }) => [index, index + text.length] as const)
}
