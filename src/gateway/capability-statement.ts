import { isRecord, isResourceType, securitySection } from '../fhir/index.ts'
import { OPERATIONS } from './interactions/operation.ts'
import { KEPT_ELSEWHERE } from './judge/kept-elsewhere.ts'

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
export function gatewayStatement(upstream: Json, baseUrl: string, smartConfiguration: object): object {
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
      .map(it => restSection(it, smartConfiguration)),
  }
}

function restSection(
  { operation: _, resource, interaction, ...kept }: Json,
  smartConfiguration: object,
): object {
  return {
    ...kept,
    security: securitySection(smartConfiguration),
    resource: listOf(resource)
      .filter(({ type }) => typeof type === 'string' && isResourceType(type) && !KEPT_ELSEWHERE.has(type))
      .map(resourceSection),
    interaction: listOf(interaction).filter(({ code }) => OF_SYSTEM.has(String(code))),
  }
}

function resourceSection({ interaction, operation, ...kept }: Json): object {
  const operations = listOf(operation).filter(({ name }) => isOffered(String(kept.type), String(name)))
  return {
    ...kept,
    interaction: listOf(interaction).filter(({ code }) => OF_TYPE.has(String(code))),
    ...(operations.length > 0 && { operation: operations }),
  }
}

/** By the table of operations. */
function isOffered(type: string, name: string): boolean {
  const called = name.startsWith('$') ? name : `$${name}`
  return [`${type}/id/${called}`, `type/${called}`, `type/id/${called}`].some(it =>
    Object.hasOwn(OPERATIONS, it),
  )
}

function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}
