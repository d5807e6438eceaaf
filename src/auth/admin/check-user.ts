import { isPlainLine, isUsername, ON_PLAIN_LINE } from '../../core/index.ts'
import { isId } from '../../fhir/index.ts'
import { LIMITS } from '../base/limits.ts'
import { findNewPasswordFault, type PasswordOwner } from '../users/passwords.ts'
import { type Admin, AdminFailure } from './action.ts'
import type { UserKind } from './users.ts'

export interface NewUser {
  readonly kind: UserKind
  readonly username: string
  readonly displayName: string
  /** `Practitioner/1` for a clinician; `Patient/1` or the first RelatedPerson for an account. */
  readonly fhirUser: string
  readonly relatedPersons?: readonly string[] | undefined
  readonly admin?: boolean | undefined
  /** Undefined: the user signs in with an identity provider. */
  readonly password?: string | undefined
}

const FHIR_USERS = { clinician: ['Practitioner'], account: ['Patient', 'RelatedPerson'] } as const

/** Why a user cannot have these properties. */
export function findUserFault(
  user: Pick<NewUser, 'kind' | 'username' | 'displayName' | 'fhirUser' | 'relatedPersons' | 'admin'>,
): AdminFailure | undefined {
  const fail = (reason: string) => new AdminFailure('invalid', reason)
  const [type = '', id = ''] = user.fhirUser.split('/')
  const types: readonly string[] = FHIR_USERS[user.kind]
  if (!isUsername(user.username))
    return fail(`a username has at most 100 characters ${ON_PLAIN_LINE}, and no spaces around them`)
  if (!isPlainLine(user.displayName, LIMITS.nameCharacters))
    return fail(`a display name has 1 to ${LIMITS.nameCharacters} characters ${ON_PLAIN_LINE}`)
  if (!types.includes(type) || !isId(id) || user.fhirUser.split('/').length !== 2)
    return fail(`a FHIR user of this kind is a reference to a ${types.join(' or ')}`)
  if ((user.relatedPersons ?? []).length > LIMITS.relatedPersons)
    return fail(`an account has at most ${LIMITS.relatedPersons} RelatedPersons`)
  if (!(user.relatedPersons ?? []).every(isId)) return fail('the id of a RelatedPerson is not valid')
  if ((user.relatedPersons ?? []).length > 0 && user.kind === 'clinician')
    return fail('only the account of a patient or of related persons acts for patients')
  if (user.admin && user.kind === 'account') return fail('only a clinician can be an administrator')
  return undefined
}

/** On loopback, the command line warns about a password that is easy to guess instead: it sets those of tests. */
export function checkPassword(
  { actor, rules, brand, minPasswordLength: minLength = 0 }: Admin,
  owner: Pick<PasswordOwner, 'username' | 'displayName'>,
  password: string | undefined,
): AdminFailure | undefined {
  const fault =
    password === undefined || (actor.kind === 'command' && rules.onLoopback)
      ? undefined
      : findNewPasswordFault(password, { ...owner, brand: brand?.name ?? '', minLength })
  return fault === undefined ? undefined : new AdminFailure('invalid', fault)
}

/** Whether the user must replace the password at the next sign-in. On loopback, commands set the passwords of tests. */
export function isIssued({ actor, rules }: Admin): boolean {
  return actor.kind !== 'command' || !rules.onLoopback
}
