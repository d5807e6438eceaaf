import { type HistoryQuery, isProblem } from '../../../fhir/index.ts'
import type { History, HistoryPage } from '../../../fhir-api/index.ts'
import { getPath } from '../../../fhir-api/index.ts'
import type { Call, Context } from '../call.ts'
import type { Problem } from '../problem.ts'
import { buildQuery } from '../upstream/request-of.ts'
import type { PageCursor } from './fetch-page.ts'
import { dropFormat } from './find-page.ts'
import { withPageSize } from './plan.ts'
import { scanVersions } from './scan-versions.ts'

/** A page of a history whose response has to be inspected. */
export async function findHistory(
  context: Context,
  call: Call<History>,
  query: HistoryQuery,
  from: PageCursor | undefined,
): Promise<HistoryPage | Problem> {
  const { interaction } = call
  const isOfOne = interaction.kind === 'history-instance'
  const page = await scanVersions(context, call, isOfOne ? 'r' : 's', {
    first: `${getPath(interaction)}?${buildQuery(dropFormat(withPageSize(query)), context.addresses)}`,
    ...{ count: query.count, from },
    ...(isOfOne && { of: { type: interaction.type, id: interaction.id } }),
  })
  if (page === 'nothing') return { versions: [], total: 0, cursors: new Map(), isNothing: true }
  if (isProblem(page)) return page
  const { items: versions, links: cursors, isWhole } = page
  return { versions, total: isWhole ? versions.length : undefined, cursors, isNothing: false }
}
