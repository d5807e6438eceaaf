import { GRANTS } from './access/access-list.ts'
import { EXPORTS } from './access/exports.ts'
import { SIGN_INS } from './accounts/sign-ins.ts'
import { USER_LISTS } from './accounts/user-list.ts'
import { CLIENTS } from './apps/client-list.ts'
import { KEYS } from './server/keys.ts'
import { defineListCommand, type ListCommand } from './subject/command.ts'

/** The lists that commands print. */
export const LIST_COMMANDS: readonly ListCommand[] = [
  ...defineListCommand(CLIENTS),
  ...defineListCommand(USER_LISTS.clinician),
  ...defineListCommand(USER_LISTS.account),
  ...defineListCommand(GRANTS),
  ...defineListCommand(EXPORTS),
  ...defineListCommand(SIGN_INS),
  ...defineListCommand(KEYS),
]
