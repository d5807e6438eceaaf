import { EXPORT_ACCESS, GRANT } from './access/access-list.ts'
import { EXPORT, EXPORTS } from './access/exports.ts'
import { USERS } from './accounts/pages/user-actions.ts'
import type { UserKind } from './accounts/user-fields.ts'
import { ALL_USERS } from './accounts/user-list.ts'
import { listUserOperations } from './accounts/user-operations.ts'
import { ENDPOINTS } from './api.ts'
import { APPS } from './apps/subject.ts'
import type { AdminOperation } from './base/action.ts'
import { POLICY_CHANGED, SETTINGS_CHANGED } from './server/system.ts'
import { listOperationCommands, type OperationCommand } from './subject/operations.ts'
import { SHOW_RECORD } from './trail/audit.ts'
import { CHECK_FILE } from './trail/check-file.ts'

/** Every operation of administrators. */
export const OPERATIONS: readonly AdminOperation[] = [
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
  ...[ALL_USERS, EXPORTS].flatMap(({ csv }) => csv?.operation ?? []),
  EXPORT_ACCESS,
]

/** The operations that are also commands. */
export const OPERATION_COMMANDS: readonly OperationCommand[] = [
  ...listOperationCommands(APPS),
  ...listUserCommands('clinician'),
  ...listUserCommands('account'),
  ...listOperationCommands(GRANT),
  ...listOperationCommands(EXPORT),
]

function listUserCommands(kind: UserKind): readonly OperationCommand[] {
  // `clinician …` also finds the accounts of patients, as in the first release.
  const toTarget = (username: string) => (kind === 'account' ? { username, kind } : { username })
  return listOperationCommands({
    ...USERS,
    name: kind,
    command: { noun: kind, option: 'username', toTarget },
  })
}
