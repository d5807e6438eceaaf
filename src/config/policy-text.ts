import { type Document, isNode, isScalar, LineCounter, parseDocument, visit } from 'yaml'
import { describeError, isFailure } from '../core/index.ts'
import {
  type AccessPolicy,
  failPolicy,
  type InvalidPolicy,
  type PolicyProblem,
  parsePolicy,
} from '../smart/index.ts'

/** Finding the line of a problem takes time, and 100 are enough to correct a file. */
const MAX_PROBLEMS = 100

/** Parses the text of a policy file: YAML or JSON (docs/policy.md). */
export function parsePolicyText(text: string): AccessPolicy | InvalidPolicy {
  const lineCounter = new LineCounter()
  try {
    // JSON is YAML. The failsafe schema keeps an id of digits as a string.
    const document = parseDocument(text, { schema: 'failsafe', lineCounter, uniqueKeys: false })
    const [error] = document.errors
    if (error) throw error
    requireUniqueKeys(document, lineCounter)
    const policy = parsePolicy(document.toJS())
    if (!isFailure(policy)) return policy
    const problems = policy.problems
      .slice(0, MAX_PROBLEMS)
      .map(one => ({ ...one, line: findLine(document, lineCounter, one.path) }))
    return { ...policy, problems }
  } catch (cause) {
    const [message = ''] = describeError(cause).split('\n')
    const problem = message.replace(/:$/, '')
    return failPolicy([{ path: [], text: problem }])
  }
}

/** The library compares each key with all others, which takes seconds for thousands. */
function requireUniqueKeys(document: Document, lines: LineCounter): void {
  visit(document, {
    Map(_position, { items }) {
      const known = new Set<unknown>()
      for (const { key } of items) {
        if (!isScalar(key)) continue
        const { line, col } = lines.linePos(key.range?.[0] ?? 0)
        if (known.has(key.value)) throw new Error(`Map keys must be unique at line ${line}, column ${col}`)
        known.add(key.value)
      }
    },
  })
}

/** The line of the member at a path, or of the nearest one around it. */
function findLine(document: Document, lines: LineCounter, path: PolicyProblem['path']): number | undefined {
  const node = path.length === 0 ? document.contents : document.getIn(path, true)
  if (isNode(node) && node.range) return lines.linePos(node.range[0]).line
  return path.length === 0 ? undefined : findLine(document, lines, path.slice(0, -1))
}
