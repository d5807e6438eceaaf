import { isFailure, isRecord } from '../../../core/index.ts'
import {
  formatExact,
  type Interaction,
  isResource,
  isTooCostly,
  isWriting,
  type Params,
  parseSearch,
  resourceTypes,
  SearchSteps,
} from '../../../fhir/index.ts'
import type { InteractionOf } from '../../../fhir-api/index.ts'
import {
  decideEntries,
  type Failure,
  type FhirRequest,
  type FhirResponse,
  findExcludedType,
  getPath,
  seesAll,
} from '../../../fhir-api/index.ts'
import { type Access, isProtected, type Permission } from '../../../smart/index.ts'
import type { GatewayContext } from '../context.ts'
import { buildHeaders, buildPath, buildQuery, buildWrite, STRICT } from '../http/build-request.ts'
import type { UpstreamRequest } from '../http/exchange.ts'
import { createReplaceStream } from '../http/urls.ts'
import { type BodyRewrite, passThrough } from '../pass/pass-through.ts'
import type { UpstreamProfile } from '../profile.ts'
import { EXCLUDED_TYPES } from '../read/access.ts'
import { requestsSubset } from '../search/search.ts'

type Write = InteractionOf<
  'create' | 'update' | 'update-conditional' | 'patch' | 'patch-conditional' | 'delete'
>

const WRITES = {
  create: { method: 'POST', permission: 'c' },
  update: { method: 'PUT', permission: 'u' },
  'update-conditional': { method: 'PUT', permission: 'u' },
  patch: { method: 'PATCH', permission: 'u' },
  'patch-conditional': { method: 'PATCH', permission: 'u' },
  delete: { method: 'DELETE', permission: 'd' },
} as const satisfies Record<
  Write['kind'],
  { readonly method: UpstreamRequest['method']; readonly permission: Permission }
>

/** Has the upstream perform a write or a Bundle in which nothing has to be checked; undefined where something has. */
export async function passWrite(
  context: GatewayContext,
  request: FhirRequest,
): Promise<FhirResponse | Failure | undefined> {
  const { interaction } = request
  if (isWrite(interaction)) {
    const write = { ...request, interaction }
    return isUnchecked(context, write)
      ? passThrough(context, write, toUpstreamRequest(context, write))
      : undefined
  }
  return interaction.kind === 'bundle' && (await isUncheckedBundle(request, context))
    ? passThrough(context, request, toBundleRequest(context, request), ENTITY_TAGS)
    : undefined
}

function toBundleRequest({ urls, baseUrl }: GatewayContext, request: FhirRequest): UpstreamRequest {
  const body = toRelativeUrls(request.body, `${baseUrl}/`)
  return buildWrite(request, 'POST', '', body, urls, { prefer: toPrefer(request) })
}

/** Some servers do not recognize their own base URL in the URL of an entry. */
function toRelativeUrls(bundle: unknown, base: string): unknown {
  if (!isRecord(bundle) || !Array.isArray(bundle.entry)) return bundle
  const entry = bundle.entry.map(it => {
    const { request } = it
    const isOwn = isRecord(request) && typeof request.url === 'string' && request.url.startsWith(base)
    return isOwn ? { ...it, request: { ...request, url: String(request.url).slice(base.length) } } : it
  })
  return { ...bundle, entry }
}

const BARE_TAG = /"etag"\s*:\s*"[A-Za-z0-9.-]{1,64}"/g
const toEntityTag = (tag: string) => tag.replace(/"([A-Za-z0-9.-]+)"$/, '"W/\\"$1\\""')

/** HAPI writes a version where a Bundle response has an entity tag. */
const ENTITY_TAGS: BodyRewrite = {
  text: body => body.replace(BARE_TAG, toEntityTag),
  createStream: () => createReplaceStream(BARE_TAG, toEntityTag, 100),
}

function toPrefer({ preferences }: FhirRequest): string {
  return `return=${preferences.answer}, ${STRICT}`
}

function isWrite(interaction: Interaction): interaction is Write {
  return Object.hasOwn(WRITES, interaction.kind)
}

/**
 * Whether the caller may make the change to every resource of the type, and see every response. For the audit trail a
 * resource is read before it is changed, so that the change is filed under its former patient.
 */
function isUnchecked({ isRecorded, baseUrl, profile }: GatewayContext, request: FhirRequest<Write>): boolean {
  const { interaction, access, body, content, preconditions } = request
  if (content || (isRecorded && hasFormerPatient(interaction))) return false
  if (!honoursPreconditions(profile(), interaction, preconditions)) return false
  if (hasCondition(request, baseUrl) || hasOtherType(interaction, body)) return false
  const { permission } = WRITES[interaction.kind]
  return seesAll(access) && access.filterFor(interaction.type, permission) === 'everything'
}

/** A precondition that the upstream ignores is checked by the gateway. */
function honoursPreconditions(
  { boundDelete, createOnlyPut }: UpstreamProfile,
  { kind }: Interaction,
  { ifMatch, ifNoneMatch }: FhirRequest['preconditions'],
): boolean {
  if (ifNoneMatch !== undefined && createOnlyPut !== 'if-none-match') return false
  return ifMatch === undefined || kind !== 'delete' || boundDelete === 'if-match'
}

/** Some servers create what a Bundle holds by the type of its content, and not by that of the URL. */
function hasOtherType(interaction: Interaction, body: unknown): boolean {
  switch (interaction.kind) {
    case 'create':
    case 'update':
    case 'update-conditional':
      return !isResource(body) || body.resourceType !== interaction.type
    default:
      return false
  }
}

/** Whether the response to an entry would not show all patients whose data it concerns, for the audit trail. */
function hidesPatients(interaction: Interaction): boolean {
  const isBinary = interaction.kind === 'read' && interaction.type === 'Binary'
  return isBinary || hasFormerPatient(interaction) || requestsSubset(interaction)
}

function hasFormerPatient(interaction: Interaction): boolean {
  return isWriting(interaction) && interaction.kind !== 'create'
}

/** Whether a write has a condition whose matches can be compared with it: then the upstream does not decide alone. */
function hasCondition({ interaction, chains, work }: FhirRequest, baseUrl: string): boolean {
  const condition = findCondition(interaction)
  if (!condition) return false
  const { type, params } = condition
  const steps = new SearchSteps(work)
  const errors = params.flatMap(pair => {
    const clause = chains?.get(pair) ?? parseSearch(type, ...pair, baseUrl, steps)
    return clause.kind === 'error' ? [clause] : []
  })
  // A condition that exceeds a limit is refused, not left to the upstream.
  return errors.length === 0 || errors.some(isTooCostly)
}

function findCondition(
  interaction: Interaction,
): { readonly type: string; readonly params: Params } | undefined {
  switch (interaction.kind) {
    case 'create':
      return interaction.ifNoneExist && { type: interaction.type, params: interaction.ifNoneExist }
    case 'update-conditional':
    case 'patch-conditional':
    case 'delete-conditional':
      return interaction
    default:
      return undefined
  }
}

function toUpstreamRequest({ urls }: GatewayContext, request: FhirRequest<Write>): UpstreamRequest {
  const { interaction, body } = request
  const params = 'params' in interaction ? interaction.params : []
  return {
    method: WRITES[interaction.kind].method,
    path: buildPath(getPath(interaction), params, urls, interaction.type),
    headers: writeHeaders(urls, request),
    ...(body !== undefined && { body: urls.toUpstreamBody(formatExact(body)) }),
  }
}

function writeHeaders(urls: GatewayContext['urls'], request: FhirRequest<Write>): UpstreamRequest['headers'] {
  const { interaction, preconditions, body } = request
  const isJsonPatch = WRITES[interaction.kind].method === 'PATCH' && !isResource(body)
  const condition = interaction.kind === 'create' ? interaction.ifNoneExist : undefined
  return {
    ...buildHeaders(request),
    prefer: toPrefer(request),
    ...(body !== undefined && {
      'content-type': isJsonPatch ? 'application/json-patch+json' : 'application/fhir+json; charset=utf-8',
    }),
    ...(preconditions.ifMatch !== undefined && { 'if-match': preconditions.ifMatch }),
    ...(preconditions.ifNoneMatch !== undefined && { 'if-none-match': preconditions.ifNoneMatch }),
    ...(condition && { 'if-none-exist': buildQuery(condition, urls, interaction.type) }),
  }
}

async function isUncheckedBundle(
  bundle: FhirRequest,
  { baseUrl, isRecorded, profile }: GatewayContext,
): Promise<boolean> {
  if (!changesAll(bundle.access) || !bundle.entries || isFailure(bundle.entries)) return false
  for await (const request of decideEntries(bundle, bundle.entries.entries)) {
    if (isFailure(request) || (isRecorded && hidesPatients(request.interaction))) return false
    if (!honoursPreconditions(profile(), request.interaction, request.preconditions)) return false
    if (hasOtherType(request.interaction, request.body)) return false
    if (!isUncheckedEntry(request, bundle.access, baseUrl)) return false
  }
  return true
}

/** Whether a caller may see and change everything, apart from the types that need a scope of their own (SCOPE-10). */
function changesAll(access: Access): boolean {
  const isAll = (permission: 'c' | 'u' | 'd') =>
    resourceTypes.every(
      type => isProtected({}, type, permission) || access.filterFor(type, permission) === 'everything',
    )
  return seesAll(access) && isAll('c') && isAll('u') && isAll('d')
}

const OF_SEVERAL_TYPES: readonly string[] = [
  'search-system',
  'history-system',
  'operation',
  'capabilities',
  'smart-configuration',
]

/** A response of several types may hold AuditEvents, and the matches of a condition are compared with it. */
function isUncheckedEntry(request: FhirRequest, access: Access, baseUrl: string): boolean {
  const { interaction } = request
  return (
    mayChangeAll(interaction, access) &&
    findExcludedType(interaction, EXCLUDED_TYPES) === undefined &&
    !OF_SEVERAL_TYPES.includes(interaction.kind) &&
    !hasCondition(request, baseUrl) &&
    !(interaction.kind === 'search-compartment' && interaction.type === '*')
  )
}

function mayChangeAll(interaction: Interaction, access: Access): boolean {
  if (interaction.kind === 'delete-conditional')
    return access.filterFor(interaction.type, 'd') === 'everything'
  if (!isWrite(interaction)) return true
  return access.filterFor(interaction.type, WRITES[interaction.kind].permission) === 'everything'
}
