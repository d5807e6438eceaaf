import { isFailure } from '../../core/index.ts'
import { createOutcome, type IssueCode, type Params, shapeResponse } from '../../fhir/index.ts'
import { bundleJson, entryJson } from '../bundle-json.ts'
import type { Handler } from '../context.ts'
import { createLinks, type Paged, type Pages, type PageTrail, resumePage } from '../paging.ts'
import { type FhirRequest, getPath, type Search } from '../request.ts'
import type { FhirResponse } from '../response.ts'
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
  { matches, includes, contents, used, shape, total, cursors, lacks }: SearchPage,
  trail?: PageTrail,
): FhirResponse {
  const format = ({ type, id, text }: SearchEntry, mode: 'match' | 'include') => {
    const fullUrl = JSON.stringify(`${context.baseUrl}/${type}/${id}`)
    return `{"fullUrl":${fullUrl},"resource":${shapeResponse(text, shape)},"search":{"mode":"${mode}"}}`
  }
  const entries = [
    ...matches.map(entry => format(entry, 'match')),
    ...includes.map(entry => format(entry, 'include')),
    ...describePartial([...matches, ...includes].filter(it => it.isPartial)),
    ...(lacks ? [formatOutcome('incomplete', LACKS[lacks], 'warning')] : []),
  ]
  const links = createLinks(context, request, path, used, cursors, trail)
  return {
    status: 200,
    body: bundleJson({ type: 'searchset', total, links, entries }),
    contents: contents ?? [...matches, ...includes],
  }
}

/** Names the resources of a page whose long strings are left out (R4 search.html#outcome). */
function describePartial(entries: readonly SearchEntry[]): readonly string[] {
  if (entries.length === 0) return []
  const names = entries.map(({ type, id }) => `${type}/${id}`).join(', ')
  const text = `Too large for a page, and shown without attachments: ${names}. Read each by its id.`
  return [formatOutcome('too-long', text, 'information')]
}

const LACKS = {
  matches: 'Some results are missing: the FHIR server did not return all of them. Narrow the search.',
  includes:
    'Some included resources are missing: the FHIR server did not return all of them. Request fewer resources at once.',
} as const satisfies Record<NonNullable<SearchPage['lacks']>, string>

/** An entry that says something about a page (R4 search.html#outcome). */
function formatOutcome(code: IssueCode, text: string, severity: 'information' | 'warning'): string {
  const { resourceType, issue } = createOutcome(code, text)
  const resource = { resourceType, issue: issue.map(it => ({ ...it, severity })) }
  return entryJson({ resource: JSON.stringify(resource), search: { mode: 'outcome' } })
}

/** A search of one type on behalf of another interaction. */
export function searchFor(request: FhirRequest, type: string, params: Params): FhirRequest<Search> {
  return { ...request, interaction: { kind: 'search-type', type, params } }
}
