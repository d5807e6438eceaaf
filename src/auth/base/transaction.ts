import type { Kysely, Transaction } from 'kysely'
import { type Failed, isFailure } from '../../core/index.ts'
import type { Schema } from '../../store/index.ts'

/** Runs a transaction that a failure rolls back: what it wrote before is undone. */
export async function runTransaction<Result>(
  db: Kysely<Schema>,
  run: (trx: Transaction<Schema>) => Promise<Result>,
): Promise<Result> {
  let failure: (Result & Failed) | undefined
  try {
    return await db.transaction().execute(async trx => {
      const result = await run(trx)
      if (!isFailure<Result, Result & Failed>(result)) return result
      failure = result
      throw new Error('Rolled back')
    })
  } catch (error) {
    if (failure === undefined) throw error
    return failure
  }
}
