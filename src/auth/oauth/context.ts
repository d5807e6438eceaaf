import type { UsersContext } from '../users/context.ts'
import type { Hooks } from './hooks.ts'
import type { KeySets } from './keys/client-key-sets.ts'
import type { KeyRing } from './keys/key-ring.ts'

/** What every endpoint depends on. */
export interface AuthContext extends UsersContext {
  readonly keys: KeyRing
  /** The key sets that clients publish. */
  readonly keySets: KeySets
  /** Adds everything that has ended to the list of revocations. */
  readonly settle: () => Promise<void>
  readonly hooks?: Hooks | undefined
}
