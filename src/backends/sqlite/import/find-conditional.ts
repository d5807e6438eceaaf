import { isResourceType, type Params, parseQuery } from '../../../fhir/index.ts'
import { fullAccess } from '../../../smart/index.ts'
import { isProblem } from '../problem.ts'
import type { Repository } from '../repository/repository.ts'
import { runQuery } from '../search/run-query.ts'

/** What a conditional reference (`Practitioner?identifier=…`) means: the one resource that matches, if it is one. */
export function findConditional(reference: string, repository: Repository): string | undefined {
  const { type, params } = partsOf(reference)
  if (!isResourceType(type)) return undefined
  const query = parseQuery([type], params, repository.baseUrl, false)
  if (isProblem(query)) return undefined
  const filter = (of: string) => fullAccess.filterFor(of, 's')
  const scene = { names: repository.names, baseUrl: repository.baseUrl, filter }
  const { hits, next } = runQuery(
    { database: repository.database, scene },
    { ...query, sort: [], count: 1 },
    undefined,
  )
  const [hit] = hits
  return hit === undefined || next !== undefined ? undefined : `${type}/${hit.id}`
}

function partsOf(reference: string): { readonly type: string; readonly params: Params } {
  const at = reference.indexOf('?')
  return { type: reference.slice(0, at), params: [...new URLSearchParams(reference.slice(at + 1))] }
}
