import { type Params, shapeResponse } from '../../fhir/index.ts'
import { bundleJson } from '../bundle-json.ts'
import type { Handler } from '../context.ts'
import { createLinks, type Paged, type Pages, resumePage, type Trail } from '../paging.ts'
import { type FhirRequest, getPath, type Search } from '../request.ts'
import type { FhirResponse } from '../response.ts'
import { isFailure } from '../response.ts'
import type { SearchEntry, SearchPage } from '../stored-version.ts'

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

/** The searchset of a page. */
export function respondWithPage(
  context: { readonly baseUrl: string; readonly pages: Pages },
  request: FhirRequest<Paged>,
  path: string,
  { matches, includes, used, shape, total, cursors }: SearchPage,
  trail?: Trail,
): FhirResponse {
  const format = ({ type, id, text }: SearchEntry, mode: 'match' | 'include') => {
    const fullUrl = JSON.stringify(`${context.baseUrl}/${type}/${id}`)
    return `{"fullUrl":${fullUrl},"resource":${shapeResponse(text, shape)},"search":{"mode":"${mode}"}}`
  }
  const entries = [
    ...matches.map(entry => format(entry, 'match')),
    ...includes.map(entry => format(entry, 'include')),
  ]
  const links = createLinks(context, request, path, used, cursors, trail)
  return {
    status: 200,
    body: bundleJson({ type: 'searchset', total, links, entries }),
    contents: [...matches, ...includes],
  }
}

/** A search of one type on behalf of another interaction. */
export function searchFor(request: FhirRequest, type: string, params: Params): FhirRequest<Search> {
  return { ...request, interaction: { kind: 'search-type', type, params } }
}
