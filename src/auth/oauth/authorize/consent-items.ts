import { parseScope, parseScopes, type ResourceScope } from '../../../smart/index.ts'
import { listCategories, OFFERED_TYPES } from '../../words/offered.ts'
import { keepPermissions, narrowTo, ScopeIndex } from '../grants/narrow.ts'

/** A checkbox on the consent page. Its parts count only while it is checked. */
export interface ConsentChoice {
  readonly scope: ResourceScope
  readonly parts: readonly ConsentChoice[]
}

/** The read or the write half of a requested scope. */
export interface ConsentItem extends ConsentChoice {
  readonly writes: boolean
  /** The whole scope. */
  readonly of: ResourceScope
}

/**
 * Lists the items of a consent page, in the order of the request. A scope that another scope covers has no checkbox
 * and is granted with the other one (`patient/*.rs patient/Patient.rs`).
 */
export function listConsentItems(grantable: string): readonly ConsentItem[] {
  const all = splitScopes(grantable)
  const others = new ScopeIndex(all.map(({ scope }) => scope))
  const covered = new Set<ConsentItem>()
  for (const item of all.toReversed()) {
    others.remove(item.scope)
    if (others.covers(item.scope)) covered.add(item)
    else others.add(item.scope)
  }
  return all.filter(item => !covered.has(item))
}

/** Splits every resource scope into its read and write halves. */
function splitScopes(grantable: string): readonly ConsentItem[] {
  return parseScopes(grantable)
    .filter(scope => scope.kind === 'resource')
    .flatMap(scope => [makeHalf(scope, false) ?? [], makeHalf(scope, true) ?? []].flat())
}

function makeHalf(of: ResourceScope, writes: boolean): ConsentItem | undefined {
  const scope = keepPermissions(of, permission => (permission === 'r' || permission === 's') !== writes)
  return scope && { scope, of, writes, parts: listParts(scope, writes) }
}

/** The user can limit a wildcard to types, and some types to categories. */
function listParts(scope: ResourceScope, writes: boolean): readonly ConsentChoice[] {
  if (scope.query.length > 0) return []
  if (scope.type === '*')
    return OFFERED_TYPES.flatMap(type => narrowTo(scope, { type }) ?? []).map(part => ({
      scope: part,
      parts: listParts(part, writes),
    }))
  return (writes ? [] : listCategories(scope.type))
    .flatMap(token => narrowTo(scope, { query: [['category', token]] }) ?? [])
    .map(part => ({ scope: part, parts: [] }))
}

/** The plain scopes that a user may decline. */
const SWITCHABLE: ReadonlySet<string> = new Set(['offline_access'])

/**
 * Limits the grantable scopes to those that the user approved, in the order of the request. Other values in the form are
 * ignored. Empty if nothing is left.
 */
export function applyApproval(grantable: string, approvedScopes: ReadonlySet<string>): string {
  const items = listConsentItems(grantable)
  const requested = new Map(
    items.map(item => {
      const texts = listApproved(item, approvedScopes)
      return [item.scope.text, item.writes ? followReading(texts, items, approvedScopes) : texts] as const
    }),
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

/** The grantable scopes, or parts of them, that the user did not approve. */
export function listDeclined(grantable: string, approvedScopes: ReadonlySet<string>): readonly string[] {
  const list = ({ scope, parts }: ConsentChoice): readonly string[] =>
    approvedScopes.has(scope.text) ? parts.flatMap(list) : [scope.text]
  const plain = grantable.split(' ').filter(text => SWITCHABLE.has(text) && !approvedScopes.has(text))
  return [...listConsentItems(grantable).flatMap(list), ...plain]
}

/** Whether a writing row is limited to the categories that the user selects for reading. It has no checkboxes for them. */
export function isLimitedByReading({ scope, writes }: ConsentItem, items: readonly ConsentItem[]): boolean {
  return writes && scope.query.length === 0 && findCategorized(scope, items).length > 0
}

/** Limits writing to the categories that the user selected for reading: an app writes nothing that it may not read. */
function followReading(
  texts: readonly string[],
  items: readonly ConsentItem[],
  approved: ReadonlySet<string>,
): readonly string[] {
  const isCut = ({ scope, parts }: ConsentChoice) =>
    approved.has(scope.text) && parts.some(part => !approved.has(part.scope.text))
  const limit = (scope: ResourceScope): readonly string[] => {
    const cut = findCategorized(scope, items).filter(isCut)
    if (cut.length === 0) return [scope.text]
    if (scope.type === '*')
      return OFFERED_TYPES.flatMap(type => narrowTo(scope, { type }) ?? []).flatMap(limit)
    const left = cut.map(({ parts }) =>
      parts.flatMap(part => (approved.has(part.scope.text) ? part.scope.query : [])),
    )
    return listCategories(scope.type)
      .filter(token => left.every(queries => queries.some(([, value]) => value === token)))
      .flatMap(token => narrowTo(scope, { query: [['category', token]] })?.text ?? [])
  }
  return parseScopes(texts).flatMap(scope =>
    scope.kind === 'resource' && scope.query.length === 0 ? limit(scope) : [scope.text],
  )
}

/** The checkboxes for reading the types of a scope that have categories. */
function findCategorized(
  { context, type }: ResourceScope,
  items: readonly ConsentItem[],
): readonly ConsentChoice[] {
  return items
    .filter(({ writes, scope }) => !writes && scope.context === context)
    .flatMap(item => [item, ...item.parts])
    .filter(
      ({ scope, parts }) => scope.type !== '*' && parts.length > 0 && (type === '*' || scope.type === type),
    )
}

/** The requested scope if both halves are approved completely, otherwise the approved parts. */
function joinHalves(
  text: string,
  halves: readonly { readonly half: ConsentItem; readonly texts: readonly string[] }[],
): readonly string[] {
  const whole = halves.every(({ half, texts }) => texts.length === 1 && texts[0] === half.scope.text)
  return whole ? [text] : halves.flatMap(({ texts }) => texts)
}

function listApproved(
  { scope, parts }: ConsentChoice,
  approvedScopes: ReadonlySet<string>,
): readonly string[] {
  if (!approvedScopes.has(scope.text)) return []
  if (parts.length === 0) return [scope.text]
  const approved = parts.map(part => listApproved(part, approvedScopes))
  const whole = parts.every((part, at) => approved[at]?.length === 1 && approved[at][0] === part.scope.text)
  return whole ? [scope.text] : approved.flat()
}
