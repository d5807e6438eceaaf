import { isProblem, type Resource } from '../../../fhir/index.ts'
import type { Call, Context } from '../call.ts'
import { findForPolicy } from '../membership/membership.ts'
import type { Problem } from '../problem.ts'
import { readLast } from '../read-version.ts'

/** So many ids fit into the URL of one search. */
const IDS_AT_ONCE = 50

/** The current content of resources, by `Type/id`; of a deleted one, its last content. */
export async function findCurrentContents(
  context: Context,
  call: Call,
  resources: readonly { readonly type: string; readonly id: string }[],
): Promise<ReadonlyMap<string, Resource> | Problem> {
  const contents = new Map<string, Resource>()
  for (const [type, some] of Map.groupBy(resources, it => it.type)) {
    const ids = [...new Set(some.map(it => it.id))]
    for (let at = 0; at < ids.length; at += IDS_AT_ONCE) {
      const few = ids.slice(at, at + IDS_AT_ONCE)
      const current = await findForPolicy(context, call, type, [['_id', few.join()]], few.length)
      if (isProblem(current)) return current
      for (const it of current) contents.set(`${type}/${it.id}`, it)
    }
    for (const id of ids) {
      const last = contents.has(`${type}/${id}`) ? undefined : await readLast(context, call, type, id)
      if (last && isProblem(last)) return last
      if (last) contents.set(`${type}/${id}`, last)
    }
  }
  return contents
}
