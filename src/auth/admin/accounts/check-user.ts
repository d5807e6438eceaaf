import { isNewUsername, isPlainLine, NEW_USERNAME_RULE, ON_PLAIN_LINE } from '../../../core/index.ts'
import { isId } from '../../../fhir/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { findNewPasswordFault, type PasswordOwner } from '../../users/passwords.ts'
import { type Admin, AdminFailure, failAdmin } from '../base/action.ts'
import { TEXTS, type UserChanges, type UserKind, type UserProperty } from './user-fields.ts'
import { findRow } from './users.ts'

export interface NewUser extends UserChanges {
  readonly kind: UserKind
  readonly username: string
  readonly displayName: string
  /** `Practitioner/1` for a clinician; `Patient/1` or the first RelatedPerson for an account. */
  readonly fhirUser: string
  /** Without it and without a link, the user signs in with an identity provider. */
  readonly password?: string | undefined
  /** Whether the user gets a link to choose a password. */
  readonly withLink?: boolean | undefined
}

const FHIR_USERS = { clinician: ['Practitioner'], account: ['Patient', 'RelatedPerson'] } as const

/** A property of a user that is not valid. */
export class UserFault extends AdminFailure {
  readonly property: UserProperty
  constructor(property: UserProperty, failure: AdminFailure) {
    super(failure.reason, failure.facts)
    this.property = property
  }
}

/** Why a user cannot have these properties, in the order of the form. */
export function listUserFaults(
  user: Pick<NewUser, 'kind' | 'username' | 'displayName' | 'fhirUser' | keyof UserChanges>,
): readonly UserFault[] {
  const { relatedPersons = [], records = true } = user
  const [type = '', id = '', ...more] = user.fhirUser.split('/')
  const types: readonly string[] = FHIR_USERS[user.kind]
  const wrongIds = relatedPersons.filter(id => !isId(id))
  const rules: readonly (readonly [isKept: boolean, property: UserProperty, AdminFailure])[] = [
    ...TEXTS.map(
      ({ property, member, isRequired }) =>
        [
          isPlainLine(user[property] ?? '', LIMITS.nameCharacters) || (!isRequired && !user[property]),
          property,
          failAdmin('text-malformed', {
            property: member.replaceAll('_', ' '),
            longest: LIMITS.nameCharacters,
            form: ON_PLAIN_LINE,
          }),
        ] as const,
    ),
    [
      !records || (types.includes(type) && isId(id) && more.length === 0),
      'fhirUser',
      failAdmin('fhir-user-malformed', { types: types.join(' or ') }),
    ],
    [records || user.kind === 'clinician', 'records', failAdmin('records-needed')],
    [records || user.fhirUser === '', 'fhirUser', failAdmin('fhir-user-without-records')],
    [
      relatedPersons.length <= LIMITS.relatedPersons,
      'relatedPersons',
      failAdmin('too-many-related-persons', { most: LIMITS.relatedPersons }),
    ],
    [
      wrongIds.length === 0,
      'relatedPersons',
      failAdmin('related-person-malformed', { ids: wrongIds.join(', ') }),
    ],
    [
      relatedPersons.length === 0 || user.kind === 'account',
      'relatedPersons',
      failAdmin('clinician-with-related-persons'),
    ],
    [!user.admin || user.kind === 'clinician', 'admin', failAdmin('administrator-not-clinician')],
    [!user.auditor || user.kind === 'clinician', 'auditor', failAdmin('auditor-not-clinician')],
    [!user.admin || !user.auditor, 'auditor', failAdmin('two-roles')],
  ]
  return rules.flatMap(([isKept, property, failure]) => (isKept ? [] : new UserFault(property, failure)))
}

/** Why a new user cannot have these properties. The username of an existing one is not judged: it does not change. */
export function listFaultsOfNew(user: Parameters<typeof listUserFaults>[0]): readonly UserFault[] {
  const isKept = isNewUsername(user.username)
  return [
    ...(isKept
      ? []
      : [new UserFault('username', failAdmin('username-malformed', { rule: NEW_USERNAME_RULE }))]),
    ...listUserFaults(user),
  ]
}

export const USERNAME_TAKEN = new UserFault('username', failAdmin('username-taken'))

/** Why a user cannot be added, as far as is known now: somebody else may take the username. */
export async function listNewUserFaults({ store }: Admin, user: NewUser): Promise<readonly UserFault[]> {
  const isTaken = (await findRow(store.db, { username: user.username })) !== undefined
  return [...(isTaken ? [USERNAME_TAKEN] : []), ...listFaultsOfNew(user)]
}

/** On loopback, the command line warns about a password that is easy to guess instead: it sets those of tests. */
export function checkPassword(
  { actor, rules, settings }: Admin,
  owner: Pick<PasswordOwner, 'username' | 'displayName'>,
  password: string | undefined,
): AdminFailure | undefined {
  const fault =
    password === undefined || (actor.kind === 'command' && rules.onLoopback)
      ? undefined
      : findNewPasswordFault(password, {
          ...owner,
          brand: settings?.brand.name ?? '',
          minLength: settings?.minPasswordLength ?? 0,
        })
  return fault === undefined ? undefined : failAdmin('password-unfit', { fault })
}

/** A user gets a password or a link, and a link only if passwords sign users in. */
export function checkLink(
  { rules }: Admin,
  { withLink, password }: Pick<NewUser, 'withLink' | 'password'>,
): AdminFailure | undefined {
  if (!withLink) return undefined
  if (password !== undefined) return failAdmin('password-and-link')
  return rules.passwords ? undefined : failAdmin('passwords-off')
}

/** Whether the user must replace the password at the next sign-in. On loopback, commands set the passwords of tests. */
export function isIssued({ actor, rules }: Admin): boolean {
  return actor.kind !== 'command' || !rules.onLoopback
}
