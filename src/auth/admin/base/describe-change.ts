type Members = Readonly<Record<string, unknown>>

/** Members that change as a consequence of others. */
const CONSEQUENCES: readonly string[] = ['signIns', 'activationEndsAt', 'admin', 'auditor']

/** The change of an app or a user in words, for lists of the audit trail: its role, and the names of other members. */
export function describeChange(
  operation: string,
  before: Members | undefined,
  after: Members = {},
): string | undefined {
  const isSet = operation.endsWith(' set')
  const names = isSet ? Object.keys(after).filter(name => !CONSEQUENCES.includes(name)) : []
  const sentences = [
    ...describeRole(before, after),
    ...(typeof after.activationEndsAt === 'number' ? ['Activation link'] : []),
    ...(names.length > 0 ? [`Changed: ${names.map(toWords).join(', ')}`] : []),
  ]
  return sentences.length > 0 ? sentences.join('. ') : undefined
}

/** A change has only the members that differ. */
function describeRole(before: Members | undefined, after: Members): readonly string[] {
  const role = nameRole(after)
  if (!before) return role === 'user' ? [] : [`Role: ${role}`]
  return nameRole(before) === role ? [] : [`Role: ${nameRole(before)} → ${role}`]
}

function nameRole({ admin, auditor }: Members): string {
  if (admin === true) return 'administrator'
  return auditor === true ? 'auditor' : 'user'
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
