import type { Transaction } from 'kysely'
import type { Schema } from '../../store/index.ts'
import type { Client } from '../client/client.ts'
import type { Parameters } from '../parameters.ts'

/**
 * A token request of an authenticated client. One transaction consumes the code or token, issues new ones and writes the
 * audit record, so that a request without a record changes nothing.
 */
export interface TokenRequest {
  readonly trx: Transaction<Schema>
  readonly client: Client
  readonly form: Parameters
}
