import type { Admin, AdminFailure, Operation } from './action.ts'
import { ENDPOINTS } from './api/routes.ts'
import { SHOW_RECORD } from './audit.ts'
import { CLIENT_OPERATIONS, type ClientOperation } from './clients.ts'
import type { CommandWords } from './operation.ts'
import { POLICY_CHANGED } from './system.ts'
import { USER_OPERATIONS, type UserOperation } from './user-operations.ts'

/** Every operation of administrators. */
export const OPERATIONS: readonly Operation[] = [
  ...Object.entries(CLIENT_OPERATIONS).map(([verb, { signIn }]) => ({ name: `client ${verb}`, signIn })),
  ...listUserOperations('clinician'),
  ...listUserOperations('account'),
  ...ENDPOINTS.flatMap(({ operation }) => operation ?? []),
  POLICY_CHANGED,
  SHOW_RECORD,
]

function listUserOperations(kind: string): readonly Operation[] {
  return Object.entries<UserOperation>(USER_OPERATIONS)
    .filter(([, { verb }]) => verb === undefined)
    .map(([verb, { signIn }]) => ({ name: `${kind} ${verb}`, signIn }))
}

/** An operation on one app or clinician that is also a command. */
interface OperationCommand extends CommandWords {
  readonly name: string
  /** The option with the app or the clinician. */
  readonly option: 'id' | 'username'
  perform(admin: Admin, subject: string): Promise<object | AdminFailure>
}

export const OPERATION_COMMANDS: readonly OperationCommand[] = [
  ...Object.entries<ClientOperation>(CLIENT_OPERATIONS).flatMap(([verb, { command, perform }]) =>
    command && perform ? [{ ...command, name: `client ${verb}`, option: 'id' as const, perform }] : [],
  ),
  ...Object.entries<UserOperation>(USER_OPERATIONS).flatMap(([verb, { command, perform }]) =>
    command && perform
      ? [
          {
            ...command,
            name: `clinician ${verb}`,
            option: 'username' as const,
            perform: (admin: Admin, username: string) => perform(admin, { username }, {}),
          },
        ]
      : [],
  ),
]
