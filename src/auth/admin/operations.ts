import { EXPORT_ACCESS } from './access/access-list.ts'
import { RECENT_SIGN_IN } from './accounts/perform-on-user.ts'
import { ALL_USERS } from './accounts/user-list.ts'
import { USER_OPERATIONS, type UserOperation } from './accounts/user-operations.ts'
import type { UserKind } from './accounts/users.ts'
import { ENDPOINTS } from './api.ts'
import { CLIENT_OPERATIONS, type ClientOperation } from './apps/clients.ts'
import type { Admin, AdminFailure, Operation } from './base/action.ts'
import type { CommandWords } from './base/operation.ts'
import { POLICY_CHANGED, SETTINGS_CHANGED } from './server/system.ts'
import { SHOW_RECORD } from './trail/audit.ts'
import { CHECK_FILE } from './trail/check-file.ts'

/** Every operation of administrators. */
export const OPERATIONS: readonly Operation[] = [
  ...new Map(
    [
      ...listUserOperations('clinician'),
      ...listUserOperations('account'),
      ...ENDPOINTS.flatMap(({ operation }) => operation ?? []),
    ].map(operation => [operation.name, operation]),
  ).values(),
  POLICY_CHANGED,
  SETTINGS_CHANGED,
  SHOW_RECORD,
  CHECK_FILE,
  ...[ALL_USERS].flatMap(({ csv }) => csv?.operation ?? []),
  EXPORT_ACCESS,
]

function listUserOperations(kind: UserKind): readonly Operation[] {
  return Object.entries(RECENT_SIGN_IN).map(([verb, signIn]) => ({ name: `${kind} ${verb}`, signIn }))
}

/** An operation on one app or user that is also a command. */
interface OperationCommand extends CommandWords {
  readonly name: string
  /** The option with the app or the user. */
  readonly option: 'id' | 'username'
  perform(admin: Admin, subject: string): Promise<object | AdminFailure>
}

export const OPERATION_COMMANDS: readonly OperationCommand[] = [
  ...Object.entries<ClientOperation>(CLIENT_OPERATIONS).flatMap(([verb, { command, perform }]) =>
    command && perform ? [{ ...command, name: `client ${verb}`, option: 'id' as const, perform }] : [],
  ),
  ...listUserCommands('clinician'),
  ...listUserCommands('account'),
]

function listUserCommands(kind: UserKind): readonly OperationCommand[] {
  return Object.entries<UserOperation>(USER_OPERATIONS).flatMap(([verb, { command, perform }]) =>
    command && perform
      ? [
          {
            ...command,
            name: `${kind} ${verb}`,
            option: 'username' as const,
            // `clinician …` also finds the accounts of patients, as in the first release.
            perform: (admin, username) =>
              perform(admin, kind === 'account' ? { username, kind } : { username }, {}),
          },
        ]
      : [],
  )
}
