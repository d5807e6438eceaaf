import { findNamedBinaries, isProblem, limits } from '../../../fhir/index.ts'
import type { SearchEntry } from '../../../fhir-api/index.ts'
import type { Call, Context } from '../call.ts'
import { searchFor } from '../search/collect.ts'
import { toEntry } from '../search/entry.ts'
import { fetchPage } from '../search/fetch-page.ts'
import { planSearch } from '../search/plan.ts'

/** DocumentReferences within the grant that name a Binary. */
export async function findDocuments(
  context: Context,
  call: Call,
  id: string,
): Promise<readonly SearchEntry[]> {
  const search = searchFor(call, 'DocumentReference', [
    ['location', `Binary/${id},${context.baseUrl}/Binary/${id}`],
    ['_count', String(limits.DOCUMENTS_OF_BINARY)],
  ])
  const plan = await planSearch(context, search)
  if (isProblem(plan) || !plan.request) return []
  const page = await fetchPage(context, search, plan.request, plan.check)
  if (isProblem(page)) return []
  return page.matches
    .filter(it => findNamedBinaries(it.resource, context.baseUrl).has(id))
    .slice(0, limits.DOCUMENTS_OF_BINARY)
    .map(toEntry)
}
