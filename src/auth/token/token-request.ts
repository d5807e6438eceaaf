import type { Transaction } from 'kysely'
import type { Schema } from '../../store/index.ts'
import type { Client } from '../client/client.ts'
import type { SigningKey } from '../keys/signing-key.ts'
import type { Parameters } from '../parameters.ts'

/**
 * A token request of a client that has proven itself. What it uses up, what it is exchanged for and its audit record
 * are one transaction: a response that cannot be sent because the record cannot be kept has used up nothing.
 */
export interface TokenRequest {
  readonly trx: Transaction<Schema>
  /** Found before the transaction begins: it may have to be read from the database. */
  readonly key: SigningKey
  readonly client: Client
  readonly form: Parameters
}
