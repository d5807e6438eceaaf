import { binariesNamed, fail, isProblem, limits, type Resource } from '../../../fhir/index.ts'
import type { SearchEntry } from '../../../fhir-api/index.ts'
import type { Call, Context } from '../call.ts'
import type { Problem } from '../problem.ts'
import { searchFor } from '../search/collect.ts'
import { toEntry } from '../search/entry.ts'
import { fetchPage } from '../search/fetch-page.ts'
import { planSearch } from '../search/plan.ts'
import { getting } from '../upstream/request-of.ts'
import { resourceIn } from '../upstream/resource-in.ts'
import { type Living, look, versionOf } from './find.ts'
import { checkContent } from './judge.ts'

/**
 * The Binary if it does not say whose it is and may be read through a DocumentReference (`conveys`). The upstream is
 * asked for the documents first: whether the Binary exists makes no difference to a caller who has none.
 */
export async function findConveyed(context: Context, call: Call, id: string): Promise<Living | undefined> {
  const documents = (await findDocuments(context, call, id)).map(it => it.parse())
  if (documents.length === 0) return undefined
  const answer = await context.upstream.ask(getting(call, `/Binary/${id}`))
  if (isProblem(answer) || answer.status !== 200) return undefined
  const binary = resourceIn(answer)
  if (isProblem(binary) || binary.resourceType !== 'Binary' || binary.id !== id) return undefined
  if (binary.securityContext !== undefined) return undefined
  const judge = await checkContent(context, call, [...documents, { resourceType: 'Binary' }])
  if (isProblem(judge)) return undefined
  if (!documents.some(it => timeOf(it) >= timeOf(binary) && judge.grantsBinary(it, id))) return undefined
  return { kind: 'living', resource: binary, text: answer.text, ...versionOf(answer, binary.meta) }
}

/** When a resource was last written; NaN, which is never at or after anything, where the upstream does not tell. */
function timeOf({ meta }: Resource): number {
  return Date.parse(meta?.lastUpdated ?? '')
}

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
  const page = await fetchPage(context, search, plan.request, plan.judge)
  if (isProblem(page)) return []
  return page.matches
    .filter(it => binariesNamed(it.resource, context.baseUrl).has(id))
    .slice(0, limits.DOCUMENTS_OF_BINARY)
    .map(toEntry)
}

/**
 * Why a DocumentReference must not be written, if so: it names a Binary that the caller may not touch, and would let
 * its readers, the caller among them, read that. An absent one is refused alike.
 */
export async function documentProblem(
  context: Context,
  call: Call,
  resource: Resource,
): Promise<Problem | undefined> {
  if (resource.resourceType !== 'DocumentReference') return undefined
  if (call.access.filterFor('Binary', 'r') === 'everything') return undefined
  const named = binariesNamed(asStored(context, resource), context.baseUrl)
  if (named.size > limits.BINARIES_OF_DOCUMENT)
    return fail({
      problem: 'too-costly',
      text: `Cannot write DocumentReference: it names more than ${limits.BINARIES_OF_DOCUMENT} Binaries`,
    })
  for (const id of named)
    if (!context.writing?.has(`Binary/${id}`) && !(await mayTouch(context, call, id)))
      return fail({ problem: 'out-of-reach' })
  return undefined
}

/** As a read will return it: URLs of the upstream become ours. */
function asStored({ addresses }: Context, resource: Resource): Resource {
  return JSON.parse(addresses.outward(JSON.stringify(resource))) as Resource
}

/** Whoever may write a Binary knows what is in it, without reading it. */
async function mayTouch(context: Context, call: Call, id: string): Promise<boolean> {
  for (const permission of ['r', 'c', 'u'] as const) {
    if (call.access.filterFor('Binary', permission).length === 0) continue
    const seen = await look(context, call, permission, 'Binary', id)
    if (!isProblem(seen) && seen.kind === 'living') return true
  }
  return (await findConveyed(context, call, id)) !== undefined
}
