import type { Static, TSchema } from '@sinclair/typebox'
import { digitsOf } from '../../fhir/index.ts'
import { type Result, succeed } from '../failure.ts'
import { SEARCH_PAGES } from '../limits.ts'
import type { Session } from '../sessions/session.ts'
import { SearchBundle } from './bundle.ts'
import { fitsSchema } from './fits-schema.ts'
import { isOfPatient } from './of-patient.ts'
import { failUnexpected, readFhir } from './read-fhir.ts'
import type { Visit } from './visit.ts'

/** A search for records of the session's patient. `patient` is always ours: no caller can name another. */
export interface PatientSearch<Schema extends TSchema> {
  readonly type: string
  readonly schema: Schema
  readonly params: Readonly<Record<string, string>>
  /** How many are collected at most, over all pages. */
  readonly limit: number
}

export interface Found<T> {
  readonly resources: readonly T[]
  /** How many there are. More than were collected only when the limit was reached. */
  readonly total: number
}

/** Follows the pages of a search up to its limit. A list that cannot be read to its end is no list. */
export async function searchFhir<Schema extends TSchema>(
  visit: Visit,
  search: PatientSearch<Schema>,
): Promise<Result<Found<Static<Schema>>>> {
  const { fhirBaseUrl } = visit.session
  const resources: Static<Schema>[] = []
  const visited = new Set<string>()
  let url = searchUrl(visit.session, search)
  let total = 0
  while (!visited.has(url) && visited.size < SEARCH_PAGES) {
    visited.add(url)
    const page = await readFhir(visit, url)
    if (!page.ok) return page
    if (!fitsSchema(SearchBundle, page.value)) return failUnexpected('it is not a Bundle')
    const matches = matchesOf(page.value, search, visit.session)
    if (matches === undefined) return failUnexpected(`a ${search.type} is not as FHIR R4 has it`)
    resources.push(...matches)
    total = Math.max(total, Number(digitsOf(page.value.total ?? 0)))
    const next = findNextPage(page.value, fhirBaseUrl)
    if (next.kind === 'elsewhere') return failUnexpected('its next page is at another address')
    if (next.kind === 'last')
      return succeed({ resources: resources.slice(0, search.limit), total: resources.length })
    if (resources.length >= search.limit)
      return succeed({
        resources: resources.slice(0, search.limit),
        total: Math.max(total, resources.length),
      })
    url = next.url
  }
  return failUnexpected('its pages do not end')
}

function searchUrl(session: Session, { type, params, limit }: PatientSearch<TSchema>): string {
  const query = new URLSearchParams({ patient: session.patientId, ...params, _count: String(limit) })
  return `${session.fhirBaseUrl}/${type}?${query}`
}

/** The matches of a page that are of this patient; undefined when one is malformed. */
function matchesOf<Schema extends TSchema>(
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
