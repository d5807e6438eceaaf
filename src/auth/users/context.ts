import type { Serialize } from '../../cache/index.ts'
import type { BaseContext } from '../base/context.ts'
import type { PasswordCheck } from './check-password.ts'
import type { Providers } from './providers/providers.ts'
import type { AccessRules } from './validity/rule.ts'

/** What sign-in depends on. */
export interface UsersContext extends BaseContext {
  readonly passwordCheck: PasswordCheck
  /** Attempts at one account of a directory take turns. */
  readonly takeDirectoryTurn: Serialize
  readonly providers: Providers
  /** What decides whether logins and grants are still good. */
  readonly rules: AccessRules
}
