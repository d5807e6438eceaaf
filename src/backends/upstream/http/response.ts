import { fail, isFailure, isRecord } from '../../../core/index.ts'
import {
  closeBundle,
  createOutcome,
  failFor,
  findJsonExcess,
  type IssueCode,
  isResource,
  OMITTED,
  type OperationOutcome,
  type OutcomeIssue,
  type PartialResource,
  parseLimited,
  type Resource,
  readPartial,
  splitBundle,
  toPlain,
  validate,
} from '../../../fhir/index.ts'
import {
  type Failure,
  type FhirRequest,
  failBroken,
  seesAll,
  type VersionedWrite,
} from '../../../fhir-api/index.ts'
import { RESPONSE_VALUES } from '../limits.ts'
import { type ExchangeOutcome, isChange, mayBeDone, type UpstreamRequest } from './exchange.ts'
import type { UpstreamResponse } from './read-response.ts'

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\b/i

export function parseResource({ headers, text }: UpstreamResponse): Resource | Failure {
  if (!JSON_TYPE.test(String(headers['content-type'] ?? ''))) return failBroken('it is not JSON')
  const excess = findJsonExcess(text, RESPONSE_VALUES)
  if (excess) return failBroken(excess, excess)
  try {
    const resource: unknown = JSON.parse(text)
    return isResource(resource) ? resource : failBroken('it is not a resource')
  } catch {
    return failBroken('its JSON is invalid')
  }
}

/** A Bundle of the upstream. The text of each resource is parsed only where it is needed. */
export interface UpstreamBundle {
  /** In `entry`, the index of its text replaces each resource. */
  readonly bundle: Resource
  /** Undefined if the response is not a Bundle. */
  readonly entries: readonly BundleEntry[] | undefined
}

export interface BundleEntry {
  /** JSON of the resource, if there is one. */
  readonly text: string | undefined
  /** The resource, if its long strings were left out. */
  readonly partial?: PartialResource | undefined
  readonly fullUrl: unknown
  readonly search: unknown
  readonly request: unknown
  readonly response: unknown
}

export function parseBundle({ headers, text }: UpstreamResponse): UpstreamBundle | Failure {
  if (!JSON_TYPE.test(String(headers['content-type'] ?? ''))) return failBroken('it is not JSON')
  try {
    const split = splitBundle(text, RESPONSE_VALUES)
    if (typeof split === 'string') return failBroken(split, split)
    const { bundle, texts } = split
    if (!isResource(bundle)) return failBroken('it is not a resource')
    const entries = listEntries(bundle, texts)
    return { bundle, entries: text.includes(OMITTED) ? entries?.map(toPartialEntry) : entries }
  } catch {
    return failBroken('its JSON is invalid')
  }
}

/** The complete entries at the beginning of a Bundle; undefined if there are none. */
export function parseBeginning(
  response: UpstreamResponse,
): { readonly bundle: Resource; readonly entries: readonly BundleEntry[] } | undefined {
  const text = closeBundle(response.text, RESPONSE_VALUES)
  const read = text === undefined ? undefined : parseBundle({ ...response, text })
  if (!read || isFailure(read)) return undefined
  const { bundle, entries = [] } = read
  return entries.length > 0 ? { bundle, entries } : undefined
}

function listEntries(
  { resourceType, entry = [] }: Resource,
  texts: readonly string[],
): readonly BundleEntry[] | undefined {
  if (resourceType !== 'Bundle' || !Array.isArray(entry) || !entry.every(isRecord)) return undefined
  return entry.map(({ resource, fullUrl, search, request, response }) => {
    const text = typeof resource === 'number' ? texts[resource] : undefined
    return { text, fullUrl, search, request, response }
  })
}

function toPartialEntry(entry: BundleEntry): BundleEntry {
  const partial = entry.text === undefined ? undefined : readPartial(entry.text)
  return partial ? { ...entry, partial, text: partial.text } : entry
}

/** The resource of an entry; undefined if it has none. */
export function parseEntry({ text, partial }: BundleEntry): Resource | undefined | Failure {
  if (text === undefined || partial) return partial?.resource
  try {
    const resource: unknown = JSON.parse(text)
    return isResource(resource) ? resource : failBroken('it is not a resource')
  } catch {
    return failBroken('its JSON is invalid')
  }
}

export function isJson(contentType: string | undefined): boolean {
  return JSON_TYPE.test(contentType ?? '')
}

/** Adds to the failure of a change that it may have been carried out, unless its response rules that out. */
export function addDoubt(failure: Failure, request: UpstreamRequest, answer: ExchangeOutcome): Failure {
  if (!isChange(request) || !mayBeDone(answer)) return failure
  switch (failure.reason) {
    case 'upstream-broken':
      return fail({ ...failure, reason: 'upstream-broken-in-change' })
    case 'upstream-unreachable':
      return failFor('upstream-unreachable-in-change')
    case 'upstream-late':
      return failFor('upstream-late-in-change')
    default:
      return failure
  }
}

type RefusedRequest = Pick<FhirRequest, 'access' | 'interaction' | 'body'>

/** Turns an unsuccessful response into the failure of the caller's request. */
export function toFailure(answer: UpstreamResponse, request: RefusedRequest): Failure {
  const { status } = answer
  if (status < 400) return failBroken(`it answered ${status}`)
  if (status === 401 || status === 403 || status === 407)
    return failBroken('it does not accept the credentials of the gateway')
  if (status === 503) return failFor('upstream-unreachable')
  if (status === 504) return failFor('upstream-late')
  if (status >= 500 && status !== 501) return failBroken(`it answered ${status}`)
  const retryAfter = answer.headers['retry-after']
  return fail({
    ...failFor('upstream-declined'),
    status,
    outcome: buildOutcome(answer, request),
    headers: {
      ...(retryAfter !== undefined && { 'retry-after': retryAfter }),
      ...(status === 405 && { allow: readAllow(answer) }),
    },
  })
}

/** RFC 9110, 15.5.6: a 405 has `Allow`; an empty one allows no method. */
function readAllow({ headers }: UpstreamResponse): string {
  const { allow } = headers
  return typeof allow === 'string' && /^[A-Z]+(?:, ?[A-Z]+)*$/.test(allow) ? allow : ''
}

/**
 * The upstream's explanation is free text, which cannot be checked: it may name resources that the caller must not know
 * (a duplicate's identifier, a resource that refers to a deleted one). A limited caller gets its codes and paths, and the
 * names in the caller's own request that the explanation mentions.
 */
function buildOutcome({ status, text }: UpstreamResponse, request: RefusedRequest): OperationOutcome {
  const issues = parseIssues(text)
  if (issues.length === 0) return createOutcome(CODES[status] ?? 'processing', TEXTS[status] ?? DECLINED)
  return {
    resourceType: 'OperationOutcome',
    issue: issues.map(issue =>
      seesAll(request.access) ? addDiagnostics(issue, status) : replaceText(issue, status, request),
    ),
  }
}

function parseIssues(text: string): readonly Readonly<Record<string, unknown>>[] {
  const body = parseLimited(text)
  return isRecord(body) && Array.isArray(body.issue) ? body.issue.filter(isRecord) : []
}

/** Clients read `diagnostics`: the reason is repeated there. */
function addDiagnostics(issue: Readonly<Record<string, unknown>>, status: number): OutcomeIssue {
  const { details, diagnostics } = issue
  const text = isRecord(details) && typeof details.text === 'string' ? details.text : TEXTS[status]
  const said = typeof diagnostics === 'string' ? diagnostics : (text ?? DECLINED)
  return { ...(issue as unknown as OutcomeIssue), diagnostics: said }
}

// R4 OperationOutcome.issue.expression: a path in the content that the caller itself sent.
const PLACE = /^[A-Z][A-Za-z]*(?:\.[A-Za-z]+(?:\[\d{1,4}\])?){0,12}$/

function replaceText(
  { severity, code, expression, details, diagnostics }: Readonly<Record<string, unknown>>,
  status: number,
  request: RefusedRequest,
): OutcomeIssue {
  const places = Array.isArray(expression)
    ? expression.filter(it => typeof it === 'string' && PLACE.test(it))
    : []
  const said = `${diagnostics ?? ''} ${isRecord(details) ? (details.text ?? '') : ''}`
  const text = `${TEXTS[status] ?? DECLINED}${describeNames(said, request)}`
  return {
    severity: SEVERITIES.find(it => it === severity) ?? 'error',
    code: KNOWN_CODES.find(it => it === code) ?? CODES[status] ?? 'processing',
    details: { text },
    diagnostics: text,
    ...(places.length > 0 && { expression: places as string[] }),
  }
}

/** The parameters or elements of the request that the upstream mentions, in upper or lower case (HAPI writes `ID`); all parameters if it mentions none. */
function describeNames(said: string, { interaction, body }: RefusedRequest): string {
  const mentioned = (names: readonly string[]) =>
    names.filter(name => new RegExp(`(?<![\\w-])${RegExp.escape(name)}(?![\\w-])`, 'i').test(said))
  const params = 'params' in interaction ? [...new Set(interaction.params.map(([name]) => name))] : []
  const named = mentioned(params).length > 0 ? mentioned(params) : params
  if (named.length > 0) return ` Check ${named.slice(0, MAX_NAMES).join(', ')}.`
  const elements = mentioned(isRecord(body) ? Object.keys(body) : []).filter(it => it !== 'resourceType')
  return elements.length > 0 ? ` Check ${elements.slice(0, MAX_NAMES).join(', ')}.` : ''
}

const MAX_NAMES = 10

const SEVERITIES = ['fatal', 'error', 'warning', 'information'] as const
const KNOWN_CODES = [
  'invalid',
  'structure',
  'required',
  'value',
  'invariant',
  'not-supported',
  'not-found',
  'deleted',
  'conflict',
  'duplicate',
  'multiple-matches',
  'too-long',
  'too-costly',
  'code-invalid',
  'processing',
] as const satisfies readonly IssueCode[]

const DECLINED = 'The FHIR server refused this request.'
const TEXTS: Readonly<Record<number, string>> = {
  400: 'The FHIR server could not read this request.',
  404: 'The FHIR server does not know this.',
  405: 'The FHIR server does not do this.',
  409: 'The FHIR server found a conflict with what it holds.',
  412: 'A condition of this request does not hold on the FHIR server.',
  413: 'This is too large for the FHIR server.',
  415: 'The FHIR server does not read this kind of content.',
  422: 'The FHIR server does not accept this content.',
  429: 'The FHIR server is asked too often. Try again soon.',
  501: 'The FHIR server does not do this.',
}
const CODES: Readonly<Record<number, IssueCode>> = {
  404: 'not-found',
  405: 'not-supported',
  409: 'conflict',
  410: 'deleted',
  412: 'conflict',
  413: 'too-long',
  415: 'not-supported',
  429: 'transient',
  501: 'not-supported',
}

function findExcess(failure: Failure): string | undefined {
  const isBroken = failure.reason === 'upstream-broken' || failure.reason === 'upstream-broken-in-change'
  return isBroken ? failure.excess : undefined
}

/** Whether a response was too large to be inspected. */
export function isTooLarge(response: object | Failure): response is Failure {
  return isFailure(response) && findExcess(response) !== undefined
}

/** The failure of a page that is too large even with one resource. */
export function explainPageFailure(failure: Failure): Failure {
  const excess = findExcess(failure)
  return excess === undefined ? failure : failFor('upstream-page-too-large', { excess })
}

export function failTooCostly(max: number): Failure {
  return failFor('checked-too-many', { most: max })
}

const ENTRY = /^Bundle\.entry\[(\d{1,4})\]/

/**
 * The change that the upstream has refused. The upstream may name a place in the transaction that was sent to it, which is
 * not the Bundle of the caller. If it names none, the change is the first one whose content is invalid.
 */
export function locateFailure(
  failure: Failure,
  writes: readonly VersionedWrite[],
): { readonly failure: Failure; readonly write?: number } {
  if (failure.reason !== 'upstream-declined') return { failure }
  let write: string | undefined
  const issue = failure.outcome.issue.map(({ expression, ...rest }) => {
    // As the upstream has sent it, so it may be anything.
    const places = Array.isArray(expression) ? expression.filter(it => typeof it === 'string') : []
    const others = places.filter(it => !ENTRY.test(it))
    write ??= places.flatMap(it => ENTRY.exec(it)?.[1] ?? [])[0]
    return { ...rest, ...(others.length > 0 && { expression: others }) }
  })
  const index = write === undefined ? findInvalid(failure, writes) : Number(write)
  return {
    failure: fail({ ...failure, outcome: { ...failure.outcome, issue } }),
    ...(index !== undefined && { write: index }),
  }
}

function findInvalid(
  { status }: Extract<Failure, { readonly reason: 'upstream-declined' }>,
  writes: readonly VersionedWrite[],
): number | undefined {
  if (status !== 400 && status !== 422) return undefined
  const index = writes.findIndex(it => it.kind !== 'delete' && validate(toPlain(it.resource)).length > 0)
  return index < 0 ? undefined : index
}
