import { parseScope, parseScopes } from '../../smart/index.ts'
import { ScopeIndex } from '../grant/scope-index.ts'
import { type Choice, type ConsentItem, listConsentItems, splitScopes } from './consent-items.ts'

/** The plain scopes that a user may decline. */
export const SWITCHABLE: ReadonlySet<string> = new Set(['offline_access'])

/**
 * Limits the grantable scopes to those that the user approved, in the order of the request. Other values in the form are
 * ignored. Empty if nothing is left.
 */
export function applyApproval(grantable: string, approvedScopes: ReadonlySet<string>): string {
  const requested = new Map(
    listConsentItems(grantable).map(item => [item.scope.text, listApproved(item, approvedScopes)]),
  )
  const approved = new ScopeIndex(parseScopes([...requested.values()].flat()))
  const halves = Map.groupBy(splitScopes(grantable), half => half.of.text)
  const granted = grantable.split(' ').flatMap(text => {
    if (parseScope(text)?.kind !== 'resource')
      return SWITCHABLE.has(text) && !approvedScopes.has(text) ? [] : [text]
    return joinHalves(
      text,
      (halves.get(text) ?? []).map(half => ({
        half,
        // A half without its own checkbox is granted with the scope that covers it.
        texts: requested.get(half.scope.text) ?? (approved.covers(half.scope) ? [half.scope.text] : []),
      })),
    )
  })
  return [...new Set(granted)].join(' ')
}

/** The requested scope if both halves are approved completely, otherwise the approved parts. */
function joinHalves(
  text: string,
  halves: readonly { readonly half: ConsentItem; readonly texts: readonly string[] }[],
): readonly string[] {
  const whole = halves.every(({ half, texts }) => texts.length === 1 && texts[0] === half.scope.text)
  return whole ? [text] : halves.flatMap(({ texts }) => texts)
}

function listApproved({ scope, parts }: Choice, approvedScopes: ReadonlySet<string>): readonly string[] {
  if (!approvedScopes.has(scope.text)) return []
  if (parts.length === 0) return [scope.text]
  const approved = parts.map(part => listApproved(part, approvedScopes))
  const whole = parts.every((part, at) => approved[at]?.length === 1 && approved[at][0] === part.scope.text)
  return whole ? [scope.text] : approved.flat()
}
