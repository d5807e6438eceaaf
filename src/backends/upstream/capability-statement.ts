import {
  findOperation,
  getOperationDefinition,
  isRecord,
  isResourceType,
  listOperations,
  type OperationRule,
  operations as ownOperations,
} from '../../fhir/index.ts'
import { createSecuritySection } from '../../fhir-api/index.ts'
import { EXCLUDED_TYPES } from './excluded-types.ts'

type Json = Readonly<Record<string, unknown>>

const OF_TYPE = new Set([
  'read',
  'vread',
  'update',
  'patch',
  'delete',
  'history-instance',
  'history-type',
  'create',
  'search-type',
])
const OF_SYSTEM = new Set(['transaction', 'batch', 'search-system', 'history-system'])

/** What can be done through the gateway: the upstream's statement with our security, without what we refuse. */
export function buildStatement(
  upstream: Json,
  baseUrl: string,
  smartConfiguration: object,
  operations: readonly OperationRule[],
): object {
  const { messaging: _, document: __, instantiates: ___, implementation, rest, ...kept } = upstream
  return {
    ...kept,
    kind: 'instance',
    implementation: {
      description: 'FHIR R4 server behind Sallyport',
      ...(isRecord(implementation) &&
        typeof implementation.description === 'string' && {
          description: implementation.description,
        }),
      url: baseUrl,
    },
    format: ['application/fhir+json', 'json'],
    patchFormat: ['application/json-patch+json', 'application/fhir+json'],
    rest: listOf(rest)
      .filter(it => it.mode === 'server')
      .map(it => restSection(it, smartConfiguration, operations)),
  }
}

function restSection(
  { operation, resource, interaction, ...kept }: Json,
  smartConfiguration: object,
  operations: readonly OperationRule[],
): object {
  const passed = listOf(operation).filter(it => findOperation(operations, { name: nameOf(it) }))
  return {
    ...kept,
    security: createSecuritySection(smartConfiguration),
    resource: listOf(resource)
      .filter(({ type }) => typeof type === 'string' && isResourceType(type) && !EXCLUDED_TYPES.has(type))
      .map(it => resourceSection(it, operations)),
    interaction: listOf(interaction).filter(({ code }) => OF_SYSTEM.has(String(code))),
    ...(passed.length > 0 && { operation: passed }),
  }
}

// The gateway performs them itself.
const OWN = ownOperations.filter(({ name }) => name === '$validate' || name === '$lastn')

function resourceSection(
  { interaction, operation, ...kept }: Json,
  operations: readonly OperationRule[],
): object {
  const type = String(kept.type)
  const own = listOperations(OWN, type)
  const theirs = listOf(operation).filter(it => {
    const name = nameOf(it).slice(1)
    return listOperations(operations, type).includes(name) && !own.includes(name)
  })
  const offered = [...own.map(name => ({ name, definition: getOperationDefinition(type, name) })), ...theirs]
  return {
    ...kept,
    interaction: listOf(interaction).filter(({ code }) => OF_TYPE.has(String(code))),
    ...(offered.length > 0 && { operation: offered }),
  }
}

/** With its `$`, which some servers write and others do not. */
function nameOf({ name }: Json): string {
  return `$${String(name).replace(/^\$/, '')}`
}

function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}
