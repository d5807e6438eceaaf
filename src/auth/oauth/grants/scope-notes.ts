import { findNearest } from '../../../core/index.ts'
import { findSearchParameter, listSearchParameters } from '../../../fhir/index.ts'
import { parseScope, parseScopes, type ResourceScope } from '../../../smart/index.ts'
import { plainScopes } from './grant-scope.ts'

/** Lists the registered scopes that are not granted as written, or permit nothing, and why (AUTHORIZE-7). */
export function listScopeNotes(list: string, searchPermission: 'r' | 's'): readonly string[] {
  const notes = list.split(' ').flatMap(text => {
    const scope = parseScope(text)
    if (scope?.kind === 'plain')
      return isKnown(text) ? [] : [`${text} is never granted${suggest(text, plainScopes)}`]
    if (scope === undefined) return []
    return [...noteSearch(scope, searchPermission), ...noteParameters(scope)]
  })
  return [...notes, ...noteVersions(list)]
}

/** Servers declare by `permission-v1` and `permission-v2` which scopes they understand (SMART 2.2, conformance). */
function noteVersions(list: string): readonly string[] {
  const scopes = parseScopes(list).filter(scope => scope.kind === 'resource')
  const older = scopes.find(({ v1 }) => v1)
  const newer = scopes.find(({ v1 }) => !v1)
  return older === undefined || newer === undefined
    ? []
    : [
        `${older.text} is a scope of SMART 1 and ${newer.text} one of SMART 2: this server grants both, but others may know only one kind`,
      ]
}

/** A scope of this server itself is not granted to apps with users, but means something. */
function isKnown(text: string): boolean {
  return plainScopes.includes(text) || text.startsWith('__')
}

function noteSearch({ text, permissions }: ResourceScope, searchPermission: 'r' | 's'): readonly string[] {
  if (searchPermission === 's' || !permissions.has('s') || permissions.has('r')) return []
  const what = permissions.size === 1 ? `${text} is never granted` : `${text} is granted without its s`
  return [`${what}: a search needs r on this server (smart.fhir.search-letter), so request rs`]
}

function noteParameters({ text, type, query }: ResourceScope): readonly string[] {
  if (type === '*') return []
  return query.flatMap(([name]) => {
    const [code = ''] = name.split(/[:.]/)
    if (code.startsWith('_') || findSearchParameter(type, code)) return []
    return [
      `${text} permits nothing: ${type} has no search parameter ${code}${suggest(
        code,
        listSearchParameters(type).map(it => it.code),
      )}`,
    ]
  })
}

function suggest(name: string, names: readonly string[]): string {
  const meant = findNearest(name, names)
  return meant === undefined ? '' : `, did you mean ${meant}?`
}
