import { isFailure } from '../../core/index.ts'
import { isWhole, type Params } from '../../fhir/index.ts'
import type { Handler } from '../context.ts'
import { createLinks, type Paged, type Pages, type PageTrail, resumePage } from '../paging.ts'
import { type FhirRequest, getPath, type Search } from '../request.ts'
import type { FhirResponse } from '../response.ts'
import { createSearchset, formatSearchset } from '../searchset.ts'
import type { SearchPage } from '../stored-version.ts'

/** Searches a type, several types, or a compartment. */
export const search: Handler<Search['kind']> = async (context, first) => {
  const { session } = context
  const path = getPath(first.interaction)
  const resumed = resumePage(context, first, path)
  if (isFailure(resumed)) return resumed
  const { request, cursor, trail } = resumed
  const passed = session.passThrough && (await session.passThrough(request, cursor))
  if (passed) return passed
  const page = await session.search(request, cursor)
  return isFailure(page) ? page : respondWithPage(context, request, path, page, trail)
}

/** The searchset of a page: as values where the way in takes them, otherwise as a Bundle. */
export function respondWithPage(
  context: { readonly baseUrl: string; readonly pages: Pages },
  request: FhirRequest<Paged>,
  path: string,
  page: SearchPage,
  trail?: PageTrail,
): FhirResponse {
  const { matches, includes, contents = [...matches, ...includes], used, shape, cursors } = page
  const links = createLinks(context, request, path, used, cursors, trail)
  const isTaken = request.takesSearchset && isWhole(shape)
  // Apps know the scopes that they have requested. Many expect nothing but resources of the types that they ask for.
  const searchset = createSearchset(page, links, isTaken ? request.lacks : undefined)
  return {
    status: 200,
    contents,
    ...(isTaken ? { searchset } : { body: formatSearchset(searchset, shape, context.baseUrl) }),
  }
}

/** A search of one type on behalf of another interaction. */
export function searchFor(request: FhirRequest, type: string, params: Params): FhirRequest<Search> {
  return { ...request, interaction: { kind: 'search-type', type, params } }
}
