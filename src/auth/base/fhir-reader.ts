import type { Settings } from '../../config/index.ts'
import { type Failed, fail, isRecord, isTimeout } from '../../core/index.ts'
import { isId, type Resource } from '../../fhir/index.ts'
import { LIMITS } from './limits.ts'
import type { AdministrationPurpose, Purpose, ServicePurpose } from './purposes.ts'
import { type AuthUser, opensRecords } from './user.ts'

export type FhirReadResult =
  | {
      readonly kind: 'found'
      readonly resource: Resource
      /** The positions of the pages before and after a page of a search. */
      readonly next?: string
      readonly previous?: string
    }
  /** It does not exist, or this user may not see it. */
  | { readonly kind: 'absent' }
  | Unavailable

/** No response, or an invalid one. `reason` may be shown. */
export interface Unavailable extends Failed {
  readonly kind: 'unavailable'
  readonly reason: 'records-unavailable'
  readonly detail: string
  readonly status?: number
}

/** Reads from the FHIR server for one user. */
export interface FhirReader {
  /** Searches: `Patient?name=…`. */
  (query: string): Promise<FhirReadResult>
  /** Reads the resource of this type and id, and accepts nothing else. */
  resource(type: string, id: string): Promise<FhirReadResult>
  /** Reads the page of a search of this type at a position, which the browser sends back. */
  page(position: string, type: string): Promise<FhirReadResult>
  /** Reads what the server needs for itself, with the same rights. */
  asService(purpose: ServicePurpose): Promise<FhirReader>
}

/** What the audit records of requests on behalf of a user say. Without an address, it is that of this server. */
export interface AuditedRead {
  readonly purpose: Purpose
  /** Of the browser. */
  readonly address?: string
}

/**
 * Why the server reads with its own access: for itself, or on behalf of an administrator, a program of the administration API,
 * or whoever runs a command.
 */
export type ReaderCaller =
  | {
      readonly purpose: ServicePurpose
      readonly subject?: never
      readonly fhirUserId?: never
      readonly address?: never
    }
  | {
      readonly purpose: AdministrationPurpose
      readonly subject?: string
      readonly fhirUserId?: string
      readonly address?: string
    }

/** Tokens for the auth server's own requests. */
export interface FhirTokens {
  /** For requests on behalf of a user. */
  forUser(user: AuthUser, audited: AuditedRead): Promise<string>
  /** For a proposal of an assistant: with these scopes, and for this use only. */
  forProposal(user: AuthUser, audited: AuditedRead, scope: string): Promise<string>
  /** To find out who a user is, and for administrators whom the policy names. */
  forLookup(type: LookupType, caller: ReaderCaller): Promise<string>
}

export type LookupType = 'Practitioner' | 'PractitionerRole' | 'RelatedPerson' | 'Patient' | 'CareTeam'

export interface ReaderContext {
  readonly settings: Settings
  readonly fetch: typeof globalThis.fetch
  readonly fhirTokens: Pick<FhirTokens, 'forUser'>
}

export type LookupContext = Pick<ReaderContext, 'settings' | 'fetch'> & {
  readonly fhirTokens: Pick<FhirTokens, 'forLookup'>
}

/** How much longer than its upstream the FHIR server may take. */
const OWN_SECONDS = 2

export async function createFhirReader(
  context: ReaderContext,
  user: AuthUser,
  audited: AuditedRead,
): Promise<FhirReader> {
  return createReaderFor(context, user, audited)
}

/** How long a page that is complete without names waits for them. */
const NAMES_SECONDS = 2

/** Reads names for a page that is useful without them, and does not wait for a slow FHIR server. */
export async function createNameReader(
  context: ReaderContext,
  user: AuthUser,
  audited: AuditedRead,
): Promise<FhirReader> {
  return createReaderFor(context, user, audited, NAMES_SECONDS)
}

async function createReaderFor(
  context: ReaderContext,
  user: AuthUser,
  audited: AuditedRead,
  seconds?: number,
): Promise<FhirReader> {
  if (!opensRecords(user)) return NO_RECORDS
  const read = createReader(context, await context.fhirTokens.forUser(user, audited), seconds)
  return Object.assign(read, {
    asService: (purpose: ServicePurpose) => createReaderFor(context, user, { ...audited, purpose }, seconds),
  })
}

const readNothing = async (): Promise<FhirReadResult> => ({ kind: 'absent' })

/** For an account that opens no records: nothing is sent to the FHIR server. */
const NO_RECORDS: FhirReader = Object.assign(readNothing, {
  resource: readNothing,
  page: readNothing,
  asService: async () => NO_RECORDS,
})

/** Reads resources of one type, with the auth server's own access: who a user is, and whom the policy names. */
export async function createUserLookup(
  context: LookupContext,
  type: LookupType,
  caller: ReaderCaller,
): Promise<FhirReader> {
  return createLookup(context, type, caller)
}

/** Like `createUserLookup`, for a page that is useful without the names. */
export async function createNameLookup(
  context: LookupContext,
  type: LookupType,
  purpose: ServicePurpose,
): Promise<FhirReader> {
  return createLookup(context, type, { purpose }, NAMES_SECONDS)
}

async function createLookup(
  context: LookupContext,
  type: LookupType,
  caller: ReaderCaller,
  seconds?: number,
): Promise<FhirReader> {
  const read = createReader(context, await context.fhirTokens.forLookup(type, caller), seconds)
  return Object.assign(read, {
    asService: (purpose: ServicePurpose) => createLookup(context, type, { purpose }, seconds),
  })
}

function createReader(
  { settings, fetch }: Pick<ReaderContext, 'settings' | 'fetch'>,
  token: string,
  seconds = settings.fhir.upstream.timeoutSeconds + OWN_SECONDS,
) {
  const { fhirBaseUrl } = settings
  const authorization = `Bearer ${token}`
  const read = async (path: string): Promise<FhirReadResult> => {
    try {
      const response = await fetch(`${fhirBaseUrl}/${path}`, {
        // Compression costs both servers more than the transfer between them.
        headers: { authorization, accept: 'application/fhir+json', 'accept-encoding': 'identity' },
        // The token is for this server only.
        redirect: 'error',
        signal: AbortSignal.timeout(seconds * 1000),
      })
      return await readResponse(response, fhirBaseUrl)
    } catch (error) {
      return failUnavailable(isTimeout(error) ? `No response in ${seconds} s` : 'No response')
    }
  }
  return Object.assign(read, {
    async resource(type: string, id: string): Promise<FhirReadResult> {
      // `..` would read the base.
      const result: FhirReadResult = isId(id) ? await read(`${type}/${id}`) : { kind: 'absent' }
      const isOther =
        result.kind === 'found' && (result.resource.resourceType !== type || result.resource.id !== id)
      return isOther ? { kind: 'absent' } : result
    },
    page: async (position: string, type: string): Promise<FhirReadResult> =>
      isPosition(position, type) ? read(position) : { kind: 'absent' },
  })
}

async function readResponse(response: Response, fhirBaseUrl: string): Promise<FhirReadResult> {
  const { status } = response
  if (status === 404 || status === 410 || status === 403) return { kind: 'absent' }
  if (status !== 200) return failUnavailable(`Error response (${status})`, status)
  const resource: unknown = await response.json()
  return isResource(resource)
    ? { kind: 'found', resource, ...readPositions(resource, fhirBaseUrl) }
    : failUnavailable('The response is not FHIR')
}

function failUnavailable(detail: string, status?: number): Unavailable {
  return fail({
    kind: 'unavailable',
    reason: 'records-unavailable',
    detail,
    ...(status !== undefined && { status }),
  })
}

/** The positions of the pages before and after this one: their URLs below the FHIR base. */
function readPositions({ link }: Resource, fhirBaseUrl: string) {
  const links: readonly unknown[] = Array.isArray(link) ? link : []
  const find = (relation: string) => {
    const url = links.filter(isLink).find(it => it.relation === relation)?.url
    return url?.startsWith(fhirBaseUrl) ? url.slice(fhirBaseUrl.length).replace(/^\//, '') : undefined
  }
  const next = find('next')
  const previous = find('previous') ?? find('prev')
  return {
    ...(next === undefined ? {} : { next }),
    ...(previous === undefined ? {} : { previous }),
  }
}

function isLink(value: unknown): value is { readonly relation: string; readonly url: string } {
  return isRecord(value) && typeof value.url === 'string'
}

/** A page is read with the user's token, so a position is only a query of the same type or of the base. */
function isPosition(position: string, type: string): boolean {
  return (
    position.length <= LIMITS.positionCharacters &&
    (position.startsWith(`${type}?`) || position.startsWith('?')) &&
    !position.includes('#')
  )
}

function isResource(value: unknown): value is Resource {
  return isRecord(value) && typeof value.resourceType === 'string'
}

/** The resources of a type in a Bundle. */
export function listResources({ entry }: Resource, type: string): readonly Resource[] {
  const entries: readonly unknown[] = Array.isArray(entry) ? entry : []
  return entries
    .map(item => (isRecord(item) ? item.resource : undefined))
    .filter(isResource)
    .filter(({ resourceType, id }) => resourceType === type && typeof id === 'string')
}
