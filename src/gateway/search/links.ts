import type { Params } from '../../fhir/index.ts'
import type { Call, Context } from '../call.ts'
import { addressOf, type Link } from './bundle-text.ts'
import type { Relation } from './fetch-page.ts'
import { holderOf } from './holder.ts'
import { PAGE } from './pages.ts'

/** The links of a Bundle: to itself as it was asked, and to the pages of the upstream, each bound to the grant. */
export function linksOf(
  context: Context,
  call: Call,
  path: string,
  asked: { readonly params: Params; readonly used: Params },
  links: ReadonlyMap<Relation, string>,
): readonly Link[] {
  const address = `${context.baseUrl}${path}`
  const holder = holderOf(call.admitted)
  return [
    { relation: 'self', url: addressOf(address, asked.used) },
    ...[...links].map(([relation, link]) => ({
      relation,
      url: `${address}?${PAGE}=${context.pages.seal({ of: path, params: asked.params, link, holder })}`,
    })),
  ]
}
