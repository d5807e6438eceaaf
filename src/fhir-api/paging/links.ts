import type { Params } from '../../fhir/index.ts'
import { grantFingerprint } from '../../smart/index.ts'
import { buildUrl, type Link } from '../bundle-json.ts'
import type { FhirRequest } from '../request.ts'
import type { Cursor, Pages } from './pages.ts'
import type { Paged } from './resume-page.ts'

export type Relation = 'next' | 'previous' | 'first' | 'last'
export type Cursors = ReadonlyMap<Relation, Cursor>

/** The links of a page: to itself as requested, and to other pages, which only the same grant can open. */
export function createLinks(
  { baseUrl, pages }: { readonly baseUrl: string; readonly pages: Pages },
  { interaction, authenticated }: FhirRequest<Paged>,
  path: string,
  used: Params,
  cursors: Cursors,
): readonly Link[] {
  const links: Link[] = [{ relation: 'self', url: buildUrl(baseUrl + path, used) }]
  if (cursors.size === 0) return links
  const { params } = interaction
  const holder = grantFingerprint(authenticated.grant)
  for (const [relation, cursor] of cursors)
    links.push({
      relation,
      url: `${baseUrl}${path}?${pages.parameter}=${pages.seal({ path, params, cursor, holder })}`,
    })
  return links
}
