import { parseScope, parseScopes } from '../../smart/index.ts'
import { ScopeIndex } from '../grant/scope-index.ts'
import { type Asking, askingsOf, type Choice, halvesOf } from './choices.ts'

/** The plain scopes that a user may leave out. The others say who the user is and what was opened. */
export const SWITCHABLE: ReadonlySet<string> = new Set(['offline_access'])

/**
 * The granted scope: exactly what was left ticked of what may be granted, in the order of asking. Whatever else a form
 * sends counts for nothing. Empty when nothing is left.
 */
export function chosenScope(grantable: string, ticked: ReadonlySet<string>): string {
  const asked = new Map(askingsOf(grantable).map(asking => [asking.scope.text, chosenOf(asking, ticked)]))
  const chosen = new ScopeIndex(parseScopes([...asked.values()].flat()))
  const halves = Map.groupBy(halvesOf(grantable), half => half.of.text)
  const granted = grantable.split(' ').flatMap(text => {
    if (parseScope(text)?.kind !== 'resource') return SWITCHABLE.has(text) && !ticked.has(text) ? [] : [text]
    return joined(
      text,
      (halves.get(text) ?? []).map(half => ({
        half,
        // A half without a box of its own follows what covers it.
        texts: asked.get(half.scope.text) ?? (chosen.covers(half.scope) ? [half.scope.text] : []),
      })),
    )
  })
  return [...new Set(granted)].join(' ')
}

/** The scope as it was asked where both halves are whole, else what is left of each. */
function joined(
  text: string,
  halves: readonly { readonly half: Asking; readonly texts: readonly string[] }[],
): readonly string[] {
  const whole = halves.every(({ half, texts }) => texts.length === 1 && texts[0] === half.scope.text)
  return whole ? [text] : halves.flatMap(({ texts }) => texts)
}

function chosenOf({ scope, parts }: Choice, ticked: ReadonlySet<string>): readonly string[] {
  if (!ticked.has(scope.text)) return []
  if (parts.length === 0) return [scope.text]
  const chosen = parts.map(part => chosenOf(part, ticked))
  const whole = parts.every((part, at) => chosen[at]?.length === 1 && chosen[at][0] === part.scope.text)
  return whole ? [scope.text] : chosen.flat()
}
