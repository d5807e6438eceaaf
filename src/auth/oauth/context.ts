import type { VerificationKey } from '../../jwt/index.ts'
import type { AuthRefusal } from '../base/refusal.ts'
import type { UsersContext } from '../users/context.ts'
import type { Hooks } from './hooks.ts'
import type { KeyRing } from './keys/key-ring.ts'

/** What every endpoint depends on. */
export interface AuthContext extends UsersContext {
  readonly keys: KeyRing
  readonly keySets: KeySets
  readonly describedClients: DescribedClients
  /** Adds everything that has ended to the list of revocations. */
  readonly settle: () => Promise<void>
  readonly hooks?: Hooks | undefined
  /** Whether the FHIR server has the records of the sample accounts. */
  readonly hasSampleRecords: boolean
}

/** Clients without a registration: the id of such a client is the URL of a document that describes it. */
export interface DescribedClients {
  /** Stores the client that a document describes, if the id is the URL of one, and it is not stored or no longer fresh. */
  refresh(id: string): Promise<AuthRefusal | undefined>
}

/** The key sets that clients publish. */
export interface KeySets {
  /** The keys of a client. An unknown `kid` causes a new fetch, unless the server is busy with other fetches. */
  find(
    client: { readonly jwksUrl: string; readonly approved: boolean },
    kid: string,
  ): Promise<readonly VerificationKey[] | AuthRefusal>
}
