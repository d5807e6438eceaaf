import { fill, isFailure, isRecord, parseJson, toRecord } from '../core/index.ts'
import {
  type Because,
  describeFailed,
  findSearchParameter,
  getFhirWords,
  type Interaction,
  isFor,
  isWriting,
  type Misunderstood,
  type Params,
  parseReference,
} from '../fhir/index.ts'
import { type AuditedRequest, findPatients } from './find-patients.ts'
import { type AuditRecord, fileUnder } from './record.ts'

export function createRecord(request: AuditedRequest, fhirBaseUrl: string): AuditRecord {
  const { interaction, grant, refusal } = request
  return {
    at: request.at,
    server: 'fhir',
    kind: 'fhir',
    interaction: nameInteraction(request),
    allowed: refusal === undefined,
    status: request.status,
    method: request.method,
    request: formatRequest(interaction, request.address),
    ...(request.isTrial && describeTrial(interaction)),
    type: 'type' in interaction ? interaction.type : undefined,
    id: findId(request, fhirBaseUrl),
    ...fileUnder(findPatients(request, fhirBaseUrl)),
    ...(request.isCall && CALL),
    client: grant?.clientId,
    subject: grant?.subject,
    fhirUser: grant?.fhirUser && `${grant.fhirUser.type}/${grant.fhirUser.id}`,
    by: request.by ?? (refusal && !isFailure(refusal) ? refusal.by : undefined),
    reason: describeReason(refusal) ?? describeSearch(request) ?? grant?.note,
    ...splitTokenId(grant?.tokenId),
    requestId: request.requestId,
    address: grant?.address ?? request.clientAddress,
    anonymous: request.anonymous,
    ...describeDetails(request),
  }
}

/** It has read nothing of a record. Its launch names the patient. */
const CALL = { interaction: 'call', patient: undefined, patients: undefined } as const

/** A change that is tried reads, and writes nothing: it is what FHIR calls `$validate` with a mode. */
function describeTrial(
  interaction: AuditedRequest['interaction'],
): Pick<AuditRecord, 'interaction' | 'method' | 'request'> {
  const place =
    'type' in interaction ? [interaction.type, 'id' in interaction ? interaction.id : undefined] : []
  const path = [...place, '$validate'].filter(it => it !== undefined).join('/')
  return { interaction: 'operation', method: 'POST', request: `${path}?mode=${interaction.kind}` }
}

/** The reason of a refusal or failure by its name, with its facts, what a refused token says about itself, and the tool of an assistant. */
function describeDetails(request: AuditedRequest): Pick<AuditRecord, 'details'> {
  const { refusal, failure } = request
  const { reason = undefined, facts = undefined } = refusal ?? failure ?? {}
  const claimed = refusal && !isFailure(refusal) ? refusal.claimed : undefined
  const mark = refusal ? undefined : request.grant?.mark
  const { tool } = request
  if ([reason, claimed, mark, tool].every(it => it === undefined)) return {}
  const isShown = facts && Object.keys(facts).length > 0 && (refusal || mayName(request))
  return {
    details: {
      ...(reason !== undefined && { reason }),
      ...(isShown && { facts }),
      ...(claimed && { claimed }),
      ...(mark !== undefined && { mark }),
      ...(tool !== undefined && { tool }),
    },
  }
}

/** The requested id; for a create or a conditional change, the id of the written resource. */
function findId(
  { interaction, location, status, body }: AuditedRequest,
  fhirBaseUrl: string,
): string | undefined {
  if ('id' in interaction && !('compartment' in interaction)) return interaction.id
  if (!('type' in interaction) || !isWriting(interaction) || status >= 300) return undefined
  const named = location === undefined ? undefined : parseReference(location, fhirBaseUrl)
  if (named) return named.id
  // An upstream may omit Location and return the resource.
  const { resourceType, id } = toRecord(parseJson(body ?? ''))
  return resourceType === interaction.type && typeof id === 'string' ? id : undefined
}

function nameInteraction({ interaction, requestBody }: AuditedRequest): string {
  const type = interaction.kind === 'bundle' && isRecord(requestBody) ? requestBody.type : undefined
  return type === 'batch' || type === 'transaction' ? type : interaction.kind
}

/** The text of the response, so that the server's log knows what the client knows. */
function describeReason(refusal: AuditedRequest['refusal']): string | undefined {
  if (refusal === undefined) return undefined
  if (isFailure(refusal)) return describeRefusing(refusal)
  const { reason, why, hint, found, outcome } = refusal
  if (why !== undefined) return why
  if (hint !== undefined && reason !== undefined && isFor('bad-token', reason)) return hint.replace(/\.$/, '')
  const text = outcome.issue[0]?.diagnostics
  return found === undefined ? text : `${text} ${found}`
}

/** The hint about a resource outside the access is for its client only. */
function describeRefusing(failure: Because): string {
  const { hint } = getFhirWords(failure.reason)
  const isHinted = hint !== undefined && isFor('not-within', failure.reason)
  return isHinted ? `${describeFailed(failure)} ${fill(hint, failure.facts)}` : describeFailed(failure)
}

function describeSearch(request: AuditedRequest): string | undefined {
  const { failure } = request
  return failure && mayDescribe(request) ? describeFailed(failure) : undefined
}

/** The facts of a patch may be content. */
function mayName(request: AuditedRequest): boolean {
  const { reason = '' } = request.failure ?? {}
  if (isFor('bad-search', reason)) return mayDescribe(request)
  return !isFor('malformed-patch', reason) && !isFor('unusable-patch', reason)
}

/** Sentences about a search name its parameters, but not their values. A name that is hidden in the request is hidden in them too. */
function mayDescribe({ failure, interaction }: AuditedRequest): boolean {
  const params = 'params' in interaction ? interaction.params : []
  return (
    failure !== undefined &&
    isFor('bad-search', failure.reason) &&
    params.every(([name]) => SAFE_NAME.test(name))
  )
}

/** The `jti` of our tokens is the grant's id, which is the launch id, a dot and a unique suffix. */
function splitTokenId(jti: string | undefined): Pick<AuditRecord, 'launch' | 'token'> {
  const dot = jti?.indexOf('.') ?? -1
  return dot > 0 ? { launch: jti?.slice(0, dot), token: jti?.slice(dot + 1) } : { token: jti }
}

const PLAIN: ReadonlySet<string> = new Set([
  '_at',
  '_count',
  '_elements',
  '_format',
  '_id',
  '_include',
  '_lastUpdated',
  '_pretty',
  '_revinclude',
  '_since',
  '_sort',
  '_summary',
  '_total',
  '_type',
])

/** Search parameters of a harmless type whose values still identify a person. */
const PERSONAL: ReadonlySet<string> = new Set([
  'identifier',
  'email',
  'phone',
  'telecom',
  'birthdate',
  'death-date',
  'deathdate',
  'address-postalcode',
])

const SHOWN_TYPES: ReadonlySet<string> = new Set(['token', 'date', 'number', 'quantity', 'reference'])

const HIDING_MODIFIERS: ReadonlySet<string> = new Set(['text', 'exact', 'contains', 'identifier', 'of-type'])

const SHOWN_TEXT = /^[\w|:/.,+$-]{1,160}$/

const HIDDEN = '…'

const known = new Map<string, boolean>()

/** Codes, dates and ids may be stored and shown; free text may not. */
function redactValue(type: string | undefined, name: string, value: string): string {
  const key = `${type ?? ''} ${name}`
  let shown = known.get(key)
  if (shown === undefined) {
    shown = isShown(type, name)
    // Callers choose the names: an unlimited map would grow without end.
    if (known.size < 5000) known.set(key, shown)
  }
  return shown && SHOWN_TEXT.test(value) && !mayBeName(name, value) ? value : HIDDEN
}

/** The portal searches for a word that a person typed by name and by id: an id without a digit may be a name. */
function mayBeName(name: string, value: string): boolean {
  return name === '_id' && value.split(',').some(id => !/\d/.test(id))
}

function isShown(type: string | undefined, name: string): boolean {
  const [code = '', modifier = ''] = name.split(':')
  if (name.includes('.') || name.startsWith('_has:') || HIDING_MODIFIERS.has(modifier)) return false
  if (PLAIN.has(code)) return true
  if (type === undefined || PERSONAL.has(code)) return false
  const parameter = findSearchParameter(type, code)
  return parameter !== undefined && SHOWN_TYPES.has(parameter.type)
}

/** The request below the FHIR base, without personal values: `Patient?name=…&_count=20`. */
export function formatRequest(interaction: Interaction | Misunderstood, address = ''): string {
  if (interaction.kind === 'misunderstood') return redactUrl(address)
  const path = formatPath(interaction)
  const type = 'type' in interaction && interaction.type !== '*' ? interaction.type : undefined
  const params = 'params' in interaction ? interaction.params : []
  return params.length === 0 ? path : `${path}?${queryText(type, params)}`
}

function queryText(type: string | undefined, params: Params): string {
  return params
    .map(([name, value]) => `${SAFE_NAME.test(name) ? name : HIDDEN}=${redactValue(type, name, value)}`)
    .join('&')
}

const SAFE_NAME = /^[\w:.-]{1,80}$/

function formatPath(interaction: Interaction): string {
  switch (interaction.kind) {
    case 'capabilities':
      return 'metadata'
    case 'smart-configuration':
      return '.well-known/smart-configuration'
    case 'read':
    case 'update':
    case 'patch':
    case 'delete':
      return `${interaction.type}/${interaction.id}`
    case 'vread':
      return `${interaction.type}/${interaction.id}/_history/${interaction.version}`
    case 'history-instance':
      return `${interaction.type}/${interaction.id}/_history`
    case 'history-type':
      return `${interaction.type}/_history`
    case 'history-system':
      return '_history'
    case 'search-type':
      return interaction.posted ? `${interaction.type}/_search` : interaction.type
    case 'search-system':
      return interaction.posted ? '_search' : ''
    case 'search-compartment':
      return `${interaction.compartment}/${interaction.id}/${interaction.type}${interaction.posted ? '/_search' : ''}`
    case 'create':
    case 'update-conditional':
    case 'patch-conditional':
    case 'delete-conditional':
      return interaction.type
    case 'bundle':
      return ''
    case 'operation':
      return [interaction.type, interaction.id, interaction.name].filter(it => it !== undefined).join('/')
  }
}

const SAFE_SEGMENT = /^(?:[A-Z][A-Za-z]{1,40}|[_$][A-Za-z-]{1,40}|[A-Za-z0-9-]{1,64})$/

/** A URL that is not a FHIR interaction may contain anything: only the parts that look like FHIR are stored. */
function redactUrl(address: string): string {
  const at = address.indexOf('?')
  const path = (at < 0 ? address : address.slice(0, at)).replace(/^\//, '')
  const segments = path.split('/', 8).map(it => (it === '' || SAFE_SEGMENT.test(it) ? it : HIDDEN))
  return `${segments.join('/')}${at < 0 ? '' : `?${HIDDEN}`}`
}
