import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { formatDigits } from '../../fhir/index.ts'
import { isFailure, type Result } from '../failure.ts'
import { SEARCH_PAGES } from '../limits.ts'
import type { Session } from '../session.ts'
import {
  Decimal,
  failUnexpected,
  fitsSchema,
  isOfPatient,
  readFhir,
  type SessionRequest,
} from './resources.ts'

/** `patient` always comes from the session; no caller can pass another one. */
interface PatientSearch<Schema extends TSchema> {
  readonly type: string
  readonly schema: Schema
  readonly params: Readonly<Record<string, string>>
  readonly limit: number
}

export interface Found<T> {
  readonly resources: readonly T[]
  /** More than the collected resources only if the limit was reached. */
  readonly total: number
}

/** Reads the pages of a search up to the limit. Fails if a page cannot be read: a partial list would mislead. */
export async function searchFhir<Schema extends TSchema>(
  sessionRequest: SessionRequest,
  search: PatientSearch<Schema>,
): Promise<Result<Found<Static<Schema>>>> {
  const { fhirBaseUrl } = sessionRequest.session
  const resources: Static<Schema>[] = []
  const visited = new Set<string>()
  let url = searchUrl(sessionRequest.session, search)
  let total = 0
  while (!visited.has(url) && visited.size < SEARCH_PAGES) {
    visited.add(url)
    const page = await readFhir(sessionRequest, url)
    if (isFailure(page)) return page
    if (!fitsSchema(SearchBundle, page)) return failUnexpected('it is not a Bundle')
    const matches = collectMatches(page, search, sessionRequest.session)
    if (matches === undefined) return failUnexpected(`a ${search.type} is not valid FHIR R4`)
    resources.push(...matches)
    total = Math.max(total, Number(formatDigits(page.total ?? 0)))
    const next = findNextPage(page, fhirBaseUrl)
    if (next.kind === 'elsewhere') return failUnexpected('its next page is outside the FHIR base')
    if (next.kind === 'last') return { resources: resources.slice(0, search.limit), total: resources.length }
    if (resources.length >= search.limit)
      return {
        resources: resources.slice(0, search.limit),
        total: Math.max(total, resources.length),
      }
    url = next.url
  }
  return failUnexpected('its pages do not end')
}

function searchUrl(session: Session, { type, params, limit }: PatientSearch<TSchema>): string {
  const query = new URLSearchParams({ patient: session.patientId, ...params, _count: String(limit) })
  return `${session.fhirBaseUrl}/${type}?${query}`
}

/** Returns undefined if an entry is malformed. */
function collectMatches<Schema extends TSchema>(
  { entry = [] }: SearchBundle,
  { type, schema }: PatientSearch<Schema>,
  session: Session,
): readonly Static<Schema>[] | undefined {
  const found = entry
    .filter(({ search }) => search?.mode === undefined || search.mode === 'match')
    .map(({ resource }) => resource)
    .filter(resource => resource?.resourceType === type && isOfPatient(resource, session))
  return found.every((resource): resource is Static<Schema> & { resourceType: string } =>
    fitsSchema(schema, resource),
  )
    ? found
    : undefined
}

/**
 * The URL of a Bundle's next page; `elsewhere` if it is not below the FHIR base, where the token must not be sent (API-12).
 */
export function findNextPage(
  { link = [] }: SearchBundle,
  fhirBaseUrl: string,
):
  | { readonly kind: 'last' }
  | { readonly kind: 'elsewhere' }
  | { readonly kind: 'next'; readonly url: string } {
  const next = link.find(({ relation }) => relation === 'next')?.url
  if (next === undefined) return { kind: 'last' }
  const url = URL.parse(next, `${fhirBaseUrl}/`)
  return url && isUnder(url, new URL(fhirBaseUrl)) ? { kind: 'next', url: url.href } : { kind: 'elsewhere' }
}

function isUnder(url: URL, base: URL): boolean {
  return (
    url.origin === base.origin &&
    url.username === '' &&
    (url.pathname === base.pathname || url.pathname.startsWith(`${base.pathname.replace(/\/$/, '')}/`))
  )
}

const SearchBundle = Type.Object({
  resourceType: Type.Literal('Bundle'),
  total: Type.Optional(Decimal(Type.Integer({ minimum: 0 }))),
  link: Type.Optional(Type.Array(Type.Object({ relation: Type.String(), url: Type.String() }))),
  entry: Type.Optional(
    Type.Array(
      Type.Object({
        resource: Type.Optional(Type.Object({ resourceType: Type.String() })),
        search: Type.Optional(Type.Object({ mode: Type.Optional(Type.String()) })),
      }),
    ),
  ),
})

type SearchBundle = Static<typeof SearchBundle>

/**
 * Undated items come last, in their original order. A partial FHIR date counts as its start; date-times compare as
 * instants.
 */
export function sortNewestFirst<T>(
  items: readonly T[],
  dateOf: (item: T) => string | undefined,
): readonly T[] {
  const dated = items.map(item => ({ item, at: Date.parse(dateOf(item) ?? '') }))
  const rank = (at: number): number => (Number.isNaN(at) ? Number.NEGATIVE_INFINITY : at)
  return dated.sort((a, b) => compare(rank(b.at), rank(a.at))).map(({ item }) => item)
}

function compare(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1
}
