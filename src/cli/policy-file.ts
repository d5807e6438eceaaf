import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import type { Settings } from '../config/index.ts'
import { type AccessPolicy, createUserFilter, type EnforcementPolicy, parsePolicy } from '../smart/index.ts'
import { CommandFailure } from './command.ts'

/**
 * What clinicians may reach by right, from the file that `smart.fhir.policy-file` names; undefined without one: then
 * every clinician may see every patient. Read once, at the start (docs/policy.md).
 */
export function userReachOf({ fhir }: Settings): EnforcementPolicy['userFilter'] {
  if (fhir.policyFile === undefined) return undefined
  return createUserFilter(rightsIn(fhir.policyFile))
}

function rightsIn(path: string): AccessPolicy {
  const rights = parsePolicy(parseFile(path))
  if ('problem' in rights) throw new CommandFailure(`Cannot use policy file ${path}: ${rights.problem}`)
  return rights
}

// JSON is YAML. The failsafe schema keeps an id of digits a text.
function parseFile(path: string): unknown {
  try {
    return parse(readFileSync(path, 'utf8'), { schema: 'failsafe' })
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.split('\n')[0]?.replace(/:$/, '') : String(cause)
    throw new CommandFailure(`Cannot read policy file ${path}: ${reason}`)
  }
}
