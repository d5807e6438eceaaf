import { parse } from 'yaml'
import { type AccessPolicy, type InvalidPolicy, parsePolicy } from '../smart/index.ts'

/** Parses the text of a policy file: YAML or JSON (docs/policy.md). */
export function parsePolicyText(text: string): AccessPolicy | InvalidPolicy {
  try {
    // JSON is YAML. The failsafe schema keeps an id of digits as a string.
    return parsePolicy(parse(text, { schema: 'failsafe' }))
  } catch (cause) {
    const [line = ''] = (cause instanceof Error ? cause.message : String(cause)).split('\n')
    const text = line.replace(/:$/, '')
    return { problem: text, problems: [{ path: [], text }] }
  }
}
