import { type Permission, parseScopes, type ResourceScope } from '../../../smart/index.ts'
import { describeKind, listCategories } from '../../oauth/grants/kinds.ts'

const VERBS: Readonly<Record<Permission, string>> = {
  r: 'read',
  s: 'search',
  c: 'add',
  u: 'change',
  d: 'delete',
}

const ORDER: readonly Permission[] = ['r', 's', 'c', 'u', 'd']

/** Describes permissions as in "Read and search" or "Add, change and delete". `r` may include the search. */
export function describePermissions(
  permissions: ReadonlySet<Permission>,
  searchPermission: 'r' | 's',
): string {
  const meant =
    searchPermission === 'r' && permissions.has('r')
      ? new Set<Permission>([...permissions, 's'])
      : permissions
  return capitalize(
    joinWithAnd(ORDER.filter(permission => meant.has(permission)).map(permission => VERBS[permission])),
  )
}

/** Describes the data of a scope: "Conditions", or "Measurements and results: Laboratory results". */
export function describeScope({ type, query }: ResourceScope): string {
  const { title } = describeKind(type)
  return query.length === 0 ? title : `${title}: ${query.map(pair => describeFilter(type, pair)).join(', ')}`
}

function describeFilter(type: string, [name, value]: readonly [string, string]): string {
  const category = listCategories(type).find(({ token }) => name === 'category' && token === value)
  return category?.title ?? `only where ${name} is ${value}`
}

/** Describes what an app may do: "Reads conditions and measurements; adds measurements". */
export function summarizeScopes(scope: string): string {
  const resources = parseScopes(scope).filter(part => part.kind === 'resource')
  const isOfUser = ({ context }: ResourceScope) => context === 'user'
  const actions = [
    ...listActions(resources.filter(resource => !isOfUser(resource))),
    ...listActions(resources.filter(isOfUser)).map(action => `${action}, of every patient you may see`),
  ]
  return actions.length === 0 ? 'Knows who you are; reads no record' : capitalize(actions.join('; '))
}

const ACTIONS: readonly (readonly [verb: string, permissions: readonly Permission[]])[] = [
  ['reads', ['r', 's']],
  ['adds', ['c']],
  ['changes', ['u']],
  ['deletes', ['d']],
]

/** Combines verbs about the same data: "adds and changes measurements". */
function listActions(scopes: readonly ResourceScope[]): readonly string[] {
  const verbs = Map.groupBy(ACTIONS, ([, permissions]) => joinWithAnd(listNouns(scopes, permissions)))
  return [...verbs]
    .filter(([nouns]) => nouns !== '')
    .map(([nouns, actions]) => `${joinWithAnd(actions.map(([verb]) => verb))} ${nouns}`)
}

function listNouns(scopes: readonly ResourceScope[], permissions: readonly Permission[]): readonly string[] {
  const permitting = scopes.filter(scope => permissions.some(permission => scope.permissions.has(permission)))
  const all = permitting.find(({ type, query }) => type === '*' && query.length === 0)
  const nouns = all
    ? [describeKind('*').noun]
    : permitting.map(({ type, query }) =>
        query.length === 0 ? describeKind(type).noun : `some ${describeKind(type).noun}`,
      )
  return [...new Set(nouns)].filter(
    noun => !nouns.includes(noun.replace(/^some /, '')) || !noun.startsWith('some '),
  )
}

function joinWithAnd(words: readonly string[]): string {
  const last = words.at(-1) ?? ''
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} and ${last}`
}

function capitalize(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
