import { type Permission, parseScopes, type ResourceScope } from '../../smart/index.ts'
import { categoriesOf, kindOf } from './kinds.ts'

const VERBS: Readonly<Record<Permission, string>> = {
  r: 'read',
  s: 'search',
  c: 'add',
  u: 'change',
  d: 'delete',
}

const ORDER: readonly Permission[] = ['r', 's', 'c', 'u', 'd']

/** What may be done, as in "Read and search" or "Add, change and delete". Where `r` searches too it says so (contract 5.5). */
export function verbsOf(permissions: ReadonlySet<Permission>, searchPermission: 'r' | 's'): string {
  const meant =
    searchPermission === 'r' && permissions.has('r')
      ? new Set<Permission>([...permissions, 's'])
      : permissions
  return capital(
    listed(ORDER.filter(permission => meant.has(permission)).map(permission => VERBS[permission])),
  )
}

/** What a scope is about: "Conditions", or "Measurements and results: Laboratory results". */
export function titleOf({ type, query }: ResourceScope): string {
  const { title } = kindOf(type)
  return query.length === 0 ? title : `${title}: ${query.map(pair => partText(type, pair)).join(', ')}`
}

function partText(type: string, [name, value]: readonly [string, string]): string {
  const category = categoriesOf(type).find(({ token }) => name === 'category' && token === value)
  return category?.title ?? `only where ${name} is ${value}`
}

/** What an app may do, in one sentence: "Reads conditions and measurements; adds measurements". */
export function summaryOf(scope: string): string {
  const resources = parseScopes(scope).filter(one => one.kind === 'resource')
  const isOfUser = ({ context }: ResourceScope) => context === 'user'
  const told = [
    ...actionsOf(resources.filter(one => !isOfUser(one))),
    ...actionsOf(resources.filter(isOfUser)).map(action => `${action}, of every patient you may see`),
  ]
  return told.length === 0 ? 'Knows who you are; reads no record' : capital(told.join('; '))
}

const ACTIONS: readonly (readonly [verb: string, permissions: readonly Permission[]])[] = [
  ['reads', ['r', 's']],
  ['adds', ['c']],
  ['changes', ['u']],
  ['deletes', ['d']],
]

/** "reads conditions and measurements", "adds and changes measurements": verbs about the same data stand together. */
function actionsOf(scopes: readonly ResourceScope[]): readonly string[] {
  const verbs = Map.groupBy(ACTIONS, ([, permissions]) => listed(nounsOf(scopes, permissions)))
  return [...verbs]
    .filter(([nouns]) => nouns !== '')
    .map(([nouns, actions]) => `${listed(actions.map(([verb]) => verb))} ${nouns}`)
}

function nounsOf(scopes: readonly ResourceScope[], permissions: readonly Permission[]): readonly string[] {
  const some = scopes.filter(scope => permissions.some(permission => scope.permissions.has(permission)))
  const all = some.find(({ type, query }) => type === '*' && query.length === 0)
  const nouns = all
    ? [kindOf('*').noun]
    : some.map(({ type, query }) => (query.length === 0 ? kindOf(type).noun : `some ${kindOf(type).noun}`))
  return [...new Set(nouns)].filter(
    noun => !nouns.includes(noun.replace(/^some /, '')) || !noun.startsWith('some '),
  )
}

export function listed(words: readonly string[]): string {
  const last = words.at(-1) ?? ''
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} and ${last}`
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
