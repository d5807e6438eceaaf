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
import { EXCLUDED_TYPES } from './access.ts'

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

/** The upstream's CapabilityStatement with the gateway's security section, without the interactions that the gateway refuses. */
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
    rest: listRecords(rest)
      .filter(it => it.mode === 'server')
      .map(it => buildRestSection(it, smartConfiguration, operations)),
  }
}

function buildRestSection(
  { operation, resource, interaction, ...kept }: Json,
  smartConfiguration: object,
  operations: readonly OperationRule[],
): object {
  const passed = listRecords(operation).filter(it =>
    findOperation(operations, { name: getOperationName(it) }),
  )
  return {
    ...kept,
    security: createSecuritySection(smartConfiguration),
    resource: listRecords(resource)
      .filter(({ type }) => typeof type === 'string' && isResourceType(type) && !EXCLUDED_TYPES.has(type))
      .map(it => buildResourceSection(it, operations)),
    interaction: listRecords(interaction).filter(({ code }) => OF_SYSTEM.has(String(code))),
    ...(passed.length > 0 && { operation: passed }),
  }
}

// The gateway performs them itself.
const OWN = ownOperations.filter(({ name }) => name === '$validate' || name === '$lastn')

function buildResourceSection(
  { interaction, operation, ...kept }: Json,
  operations: readonly OperationRule[],
): object {
  const type = String(kept.type)
  const own = listOperations(OWN, type)
  const theirs = listRecords(operation).filter(it => {
    const name = getOperationName(it).slice(1)
    return listOperations(operations, type).includes(name) && !own.includes(name)
  })
  const offered = [...own.map(name => ({ name, definition: getOperationDefinition(type, name) })), ...theirs]
  return {
    ...kept,
    interaction: listRecords(interaction).filter(({ code }) => OF_TYPE.has(String(code))),
    ...(offered.length > 0 && { operation: offered }),
  }
}

/** Some servers write the `$`, others do not. */
function getOperationName({ name }: Json): string {
  return `$${String(name).replace(/^\$/, '')}`
}

function listRecords(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}
