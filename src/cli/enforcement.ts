import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import type { Settings } from '../config/index.ts'
import { listGatewayOperations, type OperationRule, operations, parsePassedOperation } from '../fhir/index.ts'
import { type AccessPolicy, createUserFilter, type EnforcementPolicy, parsePolicy } from '../smart/index.ts'
import { CommandFailure, failMisuse } from './command.ts'

/**
 * Reads the file of `smart.fhir.policy-file` once, at the start (docs/policy.md). Without one, every clinician may
 * see every patient.
 */
export function readUserFilter({ fhir }: Settings): EnforcementPolicy['userFilter'] {
  if (fhir.policyFile === undefined) return undefined
  return createUserFilter(rightsIn(fhir.policyFile))
}

function rightsIn(path: string): AccessPolicy {
  const rights = parsePolicy(parseFile(path))
  if ('problem' in rights) throw new CommandFailure(`Cannot use policy file ${path}: ${rights.problem}`)
  return rights
}

// JSON is YAML. The failsafe schema keeps an id of digits as a string.
function parseFile(path: string): unknown {
  try {
    return parse(readFileSync(path, 'utf8'), { schema: 'failsafe' })
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.split('\n')[0]?.replace(/:$/, '') : String(cause)
    throw new CommandFailure(`Cannot read policy file ${path}: ${reason}`)
  }
}

export function findOfferedOperations({ fhir }: Settings): readonly OperationRule[] {
  return fhir.upstreamUrl === undefined
    ? operations
    : listGatewayOperations(fhir.upstream.operations.map(readOperation))
}

function readOperation(text: string): OperationRule {
  const rule = parsePassedOperation(text)
  if (!rule)
    throw new CommandFailure(
      `Cannot use SMART_FHIR_UPSTREAM_OPERATIONS: ${text} is not an operation, or its type is not in R4`,
    )
  return rule
}

const USERS = ['Practitioner', 'PractitionerRole', 'Patient', 'RelatedPerson', 'Person']

interface FhirUser {
  readonly type: string
  readonly id: string
}

/** An id alone means a Practitioner. */
export function readFhirUser(text: string, fhirBaseUrl: string): FhirUser {
  const below = text.startsWith(`${fhirBaseUrl}/`) ? text.slice(fhirBaseUrl.length + 1) : text
  const [, type = 'Practitioner', id] = /^(?:([A-Za-z]+)\/)?([A-Za-z0-9.-]{1,64})$/.exec(below) ?? []
  if (id !== undefined && USERS.includes(type)) return { type, id }
  throw failMisuse(
    'Cannot use --fhir-user: expected the id of a Practitioner, or for example Practitioner/<id>',
  )
}
