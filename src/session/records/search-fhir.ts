import { type Static, type TSchema, Type } from 'typebox'
import { isFailure } from '../../core/index.ts'
import { formatDigits, saysIncomplete } from '../../fhir/index.ts'
import type { Result } from '../failure.ts'
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
  /** Whether a resource is wanted: a server may ignore a parameter. */
  readonly keeps?: (resource: Static<Schema>) => boolean
  /** The newest come first, unless it is omitted. */
  readonly findDate?: (resource: Static<Schema>) => string | undefined
}

export interface FoundResources<T> {
  readonly resources: readonly T[]
  /** More than the collected resources only if the limit was reached. */
  readonly total: number
}

/** Reads the pages of a search up to the limit. Fails if a page cannot be read: a partial list would mislead. */
export async function searchFhir<Schema extends TSchema>(
  sessionRequest: SessionRequest,
  search: PatientSearch<Schema>,
): Promise<Result<FoundResources<Static<Schema>>>> {
  const { fhirBaseUrl, patientId } = sessionRequest.session
  const query = new URLSearchParams({ patient: patientId, ...search.params, _count: String(search.limit) })
  const resources: Static<Schema>[] = []
  const visited = new Set<string>()
  let url = `${fhirBaseUrl}/${search.type}?${query}`
  let total = 0
  while (!visited.has(url) && visited.size < SEARCH_PAGES) {
    visited.add(url)
    const page = await readFhir(sessionRequest, url)
    if (isFailure(page)) return page
    if (!fitsSchema(SearchBundle, page)) return failUnexpected('it is not a Bundle')
    if (saysIncomplete(page)) return failUnexpected('it does not have all results')
    const matches = collectMatches(page, search, sessionRequest.session)
    if (matches === undefined) return failUnexpected(`a ${search.type} is not valid FHIR R4`)
    resources.push(...matches)
    total = Math.max(total, Number(formatDigits(page.total ?? 0)))
    const next = findNextPage(page, fhirBaseUrl)
    if (isFailure(next)) return next
    if (next === undefined) return selectWanted(search, resources, resources.length)
    if (resources.length >= search.limit)
      return selectWanted(search, resources, Math.max(total, resources.length))
    url = next
  }
  return failUnexpected('its pages do not end')
}

function selectWanted<Schema extends TSchema>(
  { limit, keeps = () => true, findDate }: PatientSearch<Schema>,
  found: readonly Static<Schema>[],
  total: number,
): FoundResources<Static<Schema>> {
  const read = found.slice(0, limit)
  const wanted = read.filter(keeps)
  return {
    resources: findDate ? sortNewestFirst(wanted, findDate) : wanted,
    total: total - (read.length - wanted.length),
  }
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

/** The URL of a Bundle's next page. It must be below the FHIR base: the token is sent nowhere else (API-12). */
export function findNextPage({ link = [] }: SearchBundle, fhirBaseUrl: string): Result<string | undefined> {
  const next = link.find(({ relation }) => relation === 'next')?.url
  if (next === undefined) return undefined
  const url = URL.parse(next, `${fhirBaseUrl}/`)
  return url && isUnder(url, new URL(fhirBaseUrl))
    ? url.href
    : failUnexpected('its next page is outside the FHIR base')
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
  findDate: (item: T) => string | undefined,
): readonly T[] {
  const dated = items.map(item => {
    const time = Date.parse(findDate(item) ?? '')
    return { item, rank: Number.isNaN(time) ? -Number.MAX_VALUE : time }
  })
  return dated.sort((a, b) => b.rank - a.rank).map(({ item }) => item)
}
