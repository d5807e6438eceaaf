/** A part of a value, and whether it differs from the other value. */
export interface Piece {
  readonly text: string
  readonly differs: boolean
}

/** How a sent value differs from the most similar one of those that are expected. */
export interface Difference {
  readonly nearest: string
  readonly sent: readonly Piece[]
  readonly expected: readonly Piece[]
  /** `the port (3001 instead of 3000)`; empty for values that are not URLs. */
  readonly words: readonly string[]
}

/** Finds the difference from the most similar of the expected values. Undefined if there are none. */
export function findDifference(sent: string, expected: readonly string[]): Difference | undefined {
  const [first, ...others] = expected.map(value => compareValues(sent, value))
  return others.reduce((best, one) => (best && countSame(one) <= countSame(best) ? best : one), first)
}

function countSame({ expected }: Difference): number {
  return expected.reduce((sum, { text, differs }) => sum + (differs ? 0 : text.length), 0)
}

const PARTS = ['scheme', 'host', 'port', 'path', 'query', 'fragment'] as const
type Part = (typeof PARTS)[number]

// Not parsed as a URL, which would correct it: redirect URIs are compared as texts.
const URL_PARTS =
  /^(?<scheme>[a-z][a-z\d+.-]*:(?:\/\/)?)(?<host>\[[^\]/?#]*\]|[^:/?#]*)(?<port>(?::\d+)?)(?<path>[^?#]*)(?<query>(?:\?[^#]*)?)(?<fragment>(?:#.*)?)$/is

function splitUrl(text: string): Readonly<Record<Part, string>> | undefined {
  const groups = URL_PARTS.exec(text)?.groups
  if (!groups) return undefined
  const { scheme = '', host = '', port = '', path = '', query = '', fragment = '' } = groups
  return { scheme, host, port, path, query, fragment }
}

function compareValues(sent: string, expected: string): Difference {
  const ours = splitUrl(sent)
  const theirs = splitUrl(expected)
  if (!ours || !theirs)
    return {
      nearest: expected,
      sent: [{ text: sent, differs: true }],
      expected: [{ text: expected, differs: true }],
      words: [],
    }
  const parts = PARTS.map(part => comparePart(part, ours[part], theirs[part]))
  return {
    nearest: expected,
    sent: parts.flatMap(part => part.sent),
    expected: parts.flatMap(part => part.expected),
    words: parts.flatMap(({ words }) => words ?? []),
  }
}

interface PartDifference {
  readonly sent: readonly Piece[]
  readonly expected: readonly Piece[]
  readonly words?: string
}

function comparePart(part: Part, sent: string, expected: string): PartDifference {
  if (hideValues(part, sent) === hideValues(part, expected))
    return { sent: [{ text: sent, differs: false }], expected: [{ text: expected, differs: false }] }
  const same = part === 'path' ? findSameStart(sent, expected) : 0
  return {
    sent: splitAt(sent, same),
    expected: splitAt(expected, same),
    words: describePart(part, sent, expected),
  }
}

/** The audit trail has no values of a sent query, so they cannot be compared. */
function hideValues(part: Part, text: string): string {
  return part === 'query' ? text.replace(/=[^&]*/g, '=') : text
}

/** How many characters of two paths are the same: whole segments, or all of the shorter path. */
function findSameStart(a: string, b: string): number {
  if (a.startsWith(b) || b.startsWith(a)) return Math.min(a.length, b.length)
  let end = 0
  while (a[end] === b[end]) end += 1
  return a.slice(0, end).lastIndexOf('/') + 1
}

function splitAt(text: string, at: number): readonly Piece[] {
  return [
    { text: text.slice(0, at), differs: false },
    { text: text.slice(at), differs: true },
  ].filter(piece => piece.text !== '')
}

function describePart(part: Part, sent: string, expected: string): string {
  if (part === 'path' && sent === `${expected}/`) return 'the slash at the end, which it should not have'
  if (part === 'path' && expected === `${sent}/`) return 'the slash at the end, which is missing'
  const ours = removeSeparators(part, sent)
  const theirs = removeSeparators(part, expected)
  const isCase = ours.toLowerCase() === theirs.toLowerCase() ? ': upper and lower case count' : ''
  return `the ${part} (${ours || 'none'} instead of ${theirs || 'none'}${isCase})`
}

const SEPARATORS: Readonly<Partial<Record<Part, RegExp>>> = { scheme: /:\/*$/, port: /^:/ }

function removeSeparators(part: Part, text: string): string {
  const separator = SEPARATORS[part]
  return separator ? text.replace(separator, '') : text
}
