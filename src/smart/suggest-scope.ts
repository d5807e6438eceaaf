import { findNearest } from '../core/index.ts'
import { isResourceType, resourceTypes } from '../fhir/index.ts'
import { parseScope } from './scope.ts'

const CONTEXTS = ['patient', 'user', 'system']
const PLAIN_SCOPES = [
  'openid',
  'fhirUser',
  'offline_access',
  'online_access',
  'launch/patient',
  'launch/encounter',
]
/** Comparing names costs the product of their lengths. */
const MAX_CHARACTERS = 200

/** The scope that was probably meant by one that permits nothing: outside the grammar, or of a type that FHIR R4 lacks. */
export function suggestScope(text: string): string | undefined {
  if (text.length > MAX_CHARACTERS || isMeaningful(text)) return undefined
  const [, context = '', type = '', letters = '', query = ''] =
    /^([^/]+)\/([^./?]+)\.([^?]+)(\?.*)?$/.exec(text) ?? []
  if (type === '') return findNearest(text, PLAIN_SCOPES)
  const meant = `${findNearest(context, CONTEXTS)}/${suggestType(type)}.${suggestPermissions(letters)}${query}`
  return isMeaningful(meant) ? meant : undefined
}

/** The resource type that was probably meant; `*` stays. */
export function suggestType(name: string): string | undefined {
  return name === '*' ? name : findNearest(name.slice(0, MAX_CHARACTERS), resourceTypes)
}

/** The letters in their order, each once. */
function suggestPermissions(letters: string): string {
  const written = letters.toLowerCase()
  return /^[cruds]+$/.test(written) ? [...'cruds'].filter(it => written.includes(it)).join('') : letters
}

function isMeaningful(text: string): boolean {
  const scope = parseScope(text)
  return scope?.kind === 'plain' || (scope !== undefined && (scope.type === '*' || isType(scope.type)))
}

/** Types are compared without regard to case, as in a grant (SCOPE-4). */
function isType(name: string): boolean {
  return isResourceType(name) || resourceTypes.some(type => type.toLowerCase() === name.toLowerCase())
}
