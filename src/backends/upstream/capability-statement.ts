import { createCachedFetch } from '../../cache/index.ts'
import { isFailure, isRecord, toRecords } from '../../core/index.ts'
import {
  findOperation,
  findSearchParameter,
  getOperationDefinition,
  isResourceType,
  listOperations,
  type OperationRule,
  operations as ownOperations,
  parseInclude,
  parseLimited,
} from '../../fhir/index.ts'
import {
  AUDIT_SECTION,
  BULK_DATA,
  COMPARTMENTS,
  createSecuritySection,
  describeExport,
  type Failure,
  failBroken,
  SYSTEM_INTERACTIONS,
  TYPE_INTERACTIONS,
  US_CORE_SERVER,
} from '../../fhir-api/index.ts'
import type { GatewayContext } from './context.ts'
import type { Upstream } from './http/client.ts'
import { CAPABILITIES_EVERY_MS, CAPABILITIES_RETRY_MS } from './limits.ts'
import { EXCLUDED_TYPES } from './read/access.ts'

type Json = Readonly<Record<string, unknown>>

interface Gateway
  extends Pick<GatewayContext, 'baseUrl' | 'isRecorded' | 'isUpstreamParameter' | 'operations'> {
  /** Whether the gateway makes the files of bulk exports. */
  readonly exports: boolean
}

/** The CapabilityStatement as JSON, built again only when that of the upstream or the SMART configuration has changed. */
export function createStatement(
  gateway: Gateway,
  smartConfiguration: () => object,
): (upstream: CapabilityStatement) => string {
  let last:
    | { readonly upstream: CapabilityStatement; readonly configuration: object; readonly json: string }
    | undefined
  return upstream => {
    const configuration = smartConfiguration()
    if (last?.upstream !== upstream || last.configuration !== configuration)
      last = {
        upstream,
        configuration,
        json: JSON.stringify(buildStatement(upstream, gateway, configuration)),
      }
    return last.json
  }
}

/**
 * The upstream's CapabilityStatement with the gateway's security section and AuditEvents, without the interactions,
 * parameters and operations that the gateway refuses to a limited caller: the statement is public, and the same for all.
 */
function buildStatement(upstream: Json, gateway: Gateway, smartConfiguration: object): object {
  const { messaging: _, document: __, instantiates, implementation, rest, ...kept } = upstream
  return {
    ...kept,
    kind: 'instance',
    ...omitEmpty({
      instantiates: [...listOf(instantiates, isUsCoreServer), ...(gateway.exports ? [BULK_DATA] : [])],
    }),
    implementation: {
      description: 'FHIR R4 server behind Sallyport',
      ...(isRecord(implementation) &&
        typeof implementation.description === 'string' && {
          description: implementation.description,
        }),
      url: gateway.baseUrl,
    },
    format: ['application/fhir+json', 'json'],
    patchFormat: ['application/json-patch+json', 'application/fhir+json'],
    rest: toRecords(rest)
      .filter(it => it.mode === 'server')
      .map(it => buildRestSection(it, gateway, smartConfiguration)),
  }
}

function buildRestSection(
  { operation, resource, interaction, searchParam, ...kept }: Json,
  gateway: Gateway,
  smartConfiguration: object,
): object {
  const theirs = toRecords(operation).filter(
    it => findOperation(gateway.operations, { name: getOperationName(it) }) && !isOwnExport(gateway, it),
  )
  const passed = [...theirs, ...(gateway.exports ? describeExport() : [])]
  const parameters = toRecords(searchParam).filter(({ name }) => isOfAllTypes(String(name)))
  return {
    ...kept,
    security: createSecuritySection(smartConfiguration),
    resource: [
      ...toRecords(resource)
        .filter(({ type }) => typeof type === 'string' && isResourceType(type) && !EXCLUDED_TYPES.has(type))
        .map(it => buildResourceSection(it, gateway)),
      ...(gateway.isRecorded ? [AUDIT_SECTION] : []),
    ],
    interaction: toRecords(interaction).filter(({ code }) => SYSTEM_INTERACTIONS.includes(String(code))),
    ...(parameters.length > 0 && { searchParam: parameters }),
    compartment: COMPARTMENTS,
    ...(passed.length > 0 && { operation: passed }),
  }
}

function isOfAllTypes(name: string): boolean {
  return name.startsWith('_') && findSearchParameter('Basic', name) !== undefined
}

function buildResourceSection(
  { interaction, operation, searchParam, searchInclude, searchRevInclude, ...kept }: Json,
  gateway: Gateway,
): object {
  const type = String(kept.type)
  return {
    ...kept,
    interaction: toRecords(interaction).filter(({ code }) => TYPE_INTERACTIONS.includes(String(code))),
    // The gateway refuses to delete several resources by one condition.
    ...(kept.conditionalDelete === 'multiple' && { conditionalDelete: 'single' }),
    ...omitEmpty({
      searchInclude: listIncludes('_include', searchInclude, type),
      searchRevInclude: listIncludes('_revinclude', searchRevInclude, type),
      searchParam: toRecords(searchParam).filter(({ name }) => isUsable(gateway, type, String(name))),
      operation: [
        ...listOffered(operation, type, gateway.operations).filter(it => !isOwnExport(gateway, it)),
        ...(gateway.exports ? describeExport(type) : []),
      ],
    }),
  }
}

/** Whether a limited caller may search by a parameter: the gateway evaluates it, or leaves it to the upstream. */
function isUsable({ isUpstreamParameter }: Gateway, type: string, name: string): boolean {
  return name === '_has' || findSearchParameter(type, name) !== undefined || isUpstreamParameter(type, name)
}

/** Of any version, as in `…/us-core-server|7.0.0`. */
function isUsCoreServer(url: unknown): url is string {
  return typeof url === 'string' && url.split('|')[0] === US_CORE_SERVER
}

function listIncludes(name: string, includes: unknown, type: string): readonly string[] {
  return listOf(includes, it => typeof it === 'string').filter(it => {
    const rules = parseInclude(name, it, [type])
    return !isFailure(rules) && !EXCLUDED_TYPES.has(it.split(':')[0] ?? '')
  })
}

// The gateway performs them itself.
const OWN = ownOperations.filter(({ name }) => name === '$validate' || name === '$lastn')

/** The gateway's own takes the place of the upstream's. */
function isOwnExport({ exports }: Gateway, operation: Json): boolean {
  return exports && getOperationName(operation) === '$export'
}

function listOffered(operation: unknown, type: string, rules: readonly OperationRule[]): readonly Json[] {
  const own = listOperations(OWN, type)
  const theirs = toRecords(operation).filter(it => {
    const name = getOperationName(it).slice(1)
    return listOperations(rules, type).includes(name) && !own.includes(name)
  })
  return [...own.map(name => ({ name, definition: getOperationDefinition(type, name) })), ...theirs]
}

/** Some servers write the `$`, others do not. */
function getOperationName({ name }: Json): string {
  return `$${String(name).replace(/^\$/, '')}`
}

function listOf<T>(value: unknown, isItem: (item: unknown) => item is T): readonly T[] {
  return Array.isArray(value) ? value.filter(isItem) : []
}

/** FHIR has no empty lists. */
function omitEmpty(lists: Readonly<Record<string, readonly unknown[]>>): object {
  return Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0))
}

type CapabilityStatement = Readonly<Record<string, unknown>>

/** The upstream's CapabilityStatement. A failed read keeps the previous one. */
export interface UpstreamCapabilities {
  /** The statement that was read last. */
  current(): CapabilityStatement | undefined
  /** The statement that was read last. Waits for the first one: only a request for `metadata` does. */
  get(): Promise<CapabilityStatement | Failure>
  /** Reads it now, and then at intervals. */
  start(): void
  /** Waits for a read that has begun, and for what is done with its result. */
  settled(): Promise<void>
  close(): void
}

const PATH = '/metadata'
const HEADERS = { accept: 'application/fhir+json', 'accept-encoding': 'gzip, br' }

export function createCapabilities(
  upstream: Upstream,
  clock: () => number,
  onRead: (statement: CapabilityStatement | Failure) => Promise<void>,
): UpstreamCapabilities {
  let timer: NodeJS.Timeout | undefined
  let reading: Promise<void> | undefined
  const cache = createCachedFetch<CapabilityStatement | Failure>({
    clock,
    async fetch(path, previous) {
      const answer = await upstream.ask({ method: 'GET', path, headers: HEADERS })
      const statement = isFailure(answer) ? answer : parseStatement(answer.status, answer.text)
      return isFailure(statement)
        ? { value: previous?.value ?? statement, freshForMs: FAILED_MS }
        : { value: statement, freshForMs: CAPABILITIES_EVERY_MS }
    },
  })
  function current(): CapabilityStatement | undefined {
    const known = cache.peek(PATH)?.value
    return known && !isFailure(known) ? known : undefined
  }
  function read(): void {
    reading ??= cache
      .refresh(PATH)
      .then(onRead)
      .finally(() => {
        reading = undefined
      })
  }
  return {
    current,
    get: async () => current() ?? cache.get(PATH),
    start() {
      clearInterval(timer)
      timer = setInterval(() => {
        if (clock() >= (cache.peek(PATH)?.freshUntil ?? 0)) read()
      }, CAPABILITIES_RETRY_MS).unref()
      read()
    },
    settled: async () => reading,
    close: () => clearInterval(timer),
  }
}

/** How long nobody reads it again after a failed read. */
const FAILED_MS = 1_000

function parseStatement(status: number, text: string): CapabilityStatement | Failure {
  const why = 'its metadata is no CapabilityStatement'
  if (status !== 200) return failBroken(why)
  const statement = parseLimited(text)
  return isRecord(statement) && statement.resourceType === 'CapabilityStatement' ? statement : failBroken(why)
}
