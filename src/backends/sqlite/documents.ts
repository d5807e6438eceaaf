import { binariesNamed, type ExactResource, fail, limits, parseQuery, plainOf } from '../../fhir/index.ts'
import type { SearchEntry } from '../../fhir-api/index.ts'
import { grantsBinary, satisfies } from '../../smart/index.ts'
import type { Call, Context } from './call.ts'
import { isProblem, type Problem } from './problem.ts'
import { resourceOf, type Stored } from './repository/stored.ts'
import { toEntry } from './search/entry.ts'
import { runQuery } from './search/run-query.ts'
import { sceneOf } from './search/scene.ts'
import { findLastWrite } from './stored-version.ts'

/** Whether a Binary that does not say whose it is may be read through a DocumentReference (`conveys`). */
export function isConveyed(
  { repository, baseUrl, membership }: Context,
  { access }: Call,
  stored: Stored,
): boolean {
  const { type, id, deleted, rid } = stored
  if (type !== 'Binary' || deleted || access.filterFor('Binary', 'r').length === 0) return false
  if (resourceOf(stored).securityContext !== undefined) return false
  const { database } = repository
  const named = [['location', `Binary/${id},${baseUrl}/Binary/${id}`]] as const
  const query = parseQuery(['DocumentReference'], named, baseUrl, false)
  if (isProblem(query)) return false
  const { hits } = runQuery(
    { database, scene: sceneOf(repository, access, 'r') },
    { ...query, count: limits.DOCUMENTS_OF_BINARY },
    undefined,
  )
  const lastWrite = findLastWrite(database, rid)
  return hits.some(
    hit =>
      findLastWrite(database, hit.rid) > lastWrite &&
      grantsBinary(resourceOf(hit), id, access, baseUrl, membership),
  )
}

/** DocumentReferences within what the caller may read that name a Binary. */
export function findDocuments(
  { repository, baseUrl }: Context,
  { access }: Call,
  id: string,
): readonly SearchEntry[] {
  const { database } = repository
  const named = [['location', `Binary/${id},${baseUrl}/Binary/${id}`]] as const
  const query = parseQuery(['DocumentReference'], named, baseUrl, false)
  if (isProblem(query)) return []
  const ground = { database, scene: sceneOf(repository, access, 'r') }
  const { hits } = runQuery(ground, { ...query, count: limits.DOCUMENTS_OF_BINARY }, undefined)
  return hits.map(hit => toEntry(database, hit))
}

/**
 * Why a DocumentReference must not be written, if so: it names a Binary that the caller may not touch, and would let
 * its readers, the caller among them, read that. An absent one is refused alike.
 */
export function documentProblem(context: Context, call: Call, content: ExactResource): Problem | undefined {
  const { repository, baseUrl, writing } = context
  if (content.resourceType !== 'DocumentReference') return undefined
  if (call.access.filterFor('Binary', 'r') === 'everything') return undefined
  const named = binariesNamed(plainOf(content), baseUrl)
  if (named.size > limits.BINARIES_OF_DOCUMENT)
    return fail({
      problem: 'too-costly',
      text: `Cannot write DocumentReference: it names more than ${limits.BINARIES_OF_DOCUMENT} Binaries`,
    })
  const isOurs = (id: string) => {
    if (writing?.has(`Binary/${id}`)) return true
    const stored = repository.find('Binary', id)
    return stored !== undefined && !stored.deleted && mayTouch(context, call, stored)
  }
  return [...named].every(isOurs) ? undefined : fail({ problem: 'out-of-reach' })
}

/** Whoever may write a Binary knows what is in it, without reading it. */
function mayTouch(context: Context, call: Call, stored: Stored): boolean {
  const { baseUrl, membership } = context
  const binary = resourceOf(stored)
  return (
    (['r', 'c', 'u'] as const).some(permission =>
      satisfies(binary, call.access.filterFor('Binary', permission), baseUrl, membership),
    ) || isConveyed(context, call, stored)
  )
}
