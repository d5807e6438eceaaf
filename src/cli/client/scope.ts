import { readSettings } from '../../config/index.ts'
import { findScopeListFault, parseScope } from '../../smart/index.ts'
import { failMisuse, type Io } from '../command.ts'

/** Scopes of the SMART grammar, on types that FHIR R4 has, each once. */
export async function checkScope(text: string): Promise<string> {
  const { isResourceType } = await import('../../fhir/index.ts')
  const scopes = [...new Set(text.split(/\s+/).filter(part => part !== ''))]
  if (scopes.length === 0) throw failMisuse('Empty --scope')
  const fault = findScopeListFault(scopes.join(' '))
  if (fault !== undefined) throw failMisuse(`Cannot use --scope: it ${fault}`)
  for (const scope of scopes) {
    const parsed = parseScope(scope)
    if (parsed === undefined)
      throw failMisuse(`Cannot use scope ${scope}: expected for example patient/Condition.rs`)
    if (parsed.kind === 'resource' && parsed.type !== '*' && !isResourceType(parsed.type)) {
      throw failMisuse(`Cannot use scope ${scope}: FHIR R4 has no resource type ${parsed.type}`)
    }
  }
  return scopes.join(' ')
}

/** Says which scopes are not granted as written (AUTHORIZE-7). */
export function noteScopes(scope: string, io: Io): void {
  if (readSettings(io.env, io.cwd).fhir.searchPermission === 's') return
  for (const text of scope.split(' ')) {
    const parsed = parseScope(text)
    if (parsed?.kind !== 'resource' || !parsed.permissions.has('s') || parsed.permissions.has('r')) continue
    const what =
      parsed.permissions.size === 1 ? `${text} is never granted` : `${text} is granted without its s`
    io.stderr.write(`Note: ${what}: here a search needs r (smart.fhir.search-letter), so ask for rs\n`)
  }
}

/** Whether every scope is for back ends (`system/`, and the launch API): a client that no user ever authorizes. */
export function isForSystemsOnly(scope: string): boolean {
  return scope.split(' ').every(part => part.startsWith('system/') || part === '__launch-contexts.c')
}
