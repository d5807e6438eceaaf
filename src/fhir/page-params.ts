import type { Interaction, Params } from './interaction.ts'

type Paged = Extract<Interaction, { readonly params: Params }>

// How the answer is written is looked at elsewhere (`acceptsJson`).
const FORMAT: ReadonlySet<string> = new Set(['_format', '_pretty'])

/**
 * The parameters that a page goes on with: those that were first asked, with `_count` and `_total` as the client may have
 * added them to the link. Undefined where it added anything else.
 */
export function readPageParams(
  { kind, params }: Paged,
  pageParameter: string,
  first: Params,
): Params | undefined {
  const added = params.filter(([name]) => name !== pageParameter)
  if (params.length - added.length !== 1) return undefined
  if (!added.every(([name]) => FORMAT.has(name) || name === '_count' || name === '_total')) return undefined
  // Only searches have a total that can be asked for.
  const replaced = added.filter(
    ([name]) => name === '_count' || (name === '_total' && kind.startsWith('search-')),
  )
  const names = new Set(replaced.map(([name]) => name))
  return [...first.filter(([name]) => !names.has(name)), ...replaced]
}
