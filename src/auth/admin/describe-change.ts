type Members = Readonly<Record<string, unknown>>

/** Members that change as a consequence of others. */
const CONSEQUENCES: readonly string[] = ['signIns', 'admin']

/** The change of an app or a user in words, for lists of the audit trail: its role, and the names of other members. */
export function describeChange(
  operation: string,
  before: Members | undefined,
  after: Members = {},
): string | undefined {
  const isSet = operation.endsWith(' set')
  const names = isSet ? Object.keys(after).filter(name => !CONSEQUENCES.includes(name)) : []
  const sentences = [
    ...describeRole(before?.admin, after.admin),
    ...(names.length > 0 ? [`Changed: ${names.map(toWords).join(', ')}`] : []),
  ]
  return sentences.length > 0 ? sentences.join('. ') : undefined
}

function describeRole(before: unknown, after: unknown): readonly string[] {
  if (before === true && after === false) return ['Role: administrator → user']
  if (before === false && after === true) return ['Role: user → administrator']
  return before === undefined && after === true ? ['Role: administrator'] : []
}

/** `fhirUser` as FHIR user, `redirect_uris` as redirect URIs. */
export function toWords(name: string): string {
  return name
    .replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
    .replaceAll('_', ' ')
    .replace(/^admin$/, 'administrator')
    .replace(/^sign ins$/, 'sign-ins')
    .replace(/\b(?:fhir|uri|pkce|url|jwks)/g, word => word.toUpperCase())
}
