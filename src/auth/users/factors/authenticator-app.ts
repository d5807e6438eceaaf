import { randomUUID } from 'node:crypto'
import type { Kysely, Transaction } from 'kysely'
import type { Schema } from '../../../store/index.ts'
import type { UsersContext } from '../context.ts'
import { type Factor, listFactors } from './factors.ts'
import { findTotpStep } from './totp.ts'

const toSecretCell = (id: string) => ({ table: 'factor', column: 'secret_sealed', row: id }) as const

/**
 * Stores an authenticator app. The code that proved it is used up. Returns false if the user has it: stored twice, it would
 * accept each code twice. The account must be locked.
 */
export async function addTotp(
  { sealer, clock }: Pick<UsersContext, 'sealer' | 'clock'>,
  trx: Transaction<Schema>,
  { userId, name, secret, step }: Record<'userId' | 'name' | 'secret', string> & { readonly step: number },
): Promise<boolean> {
  const factors = await listFactors(trx, userId)
  if (factors.some(factor => openSecret(sealer, factor) === secret)) return false
  const id = randomUUID()
  await trx
    .insertInto('factor')
    .values({
      id,
      clinician_id: userId,
      kind: 'totp',
      name,
      secret_sealed: sealer.seal(secret, toSecretCell(id)),
      last_step: step,
      created_at: clock(),
      used_at: clock(),
    })
    .execute()
  return true
}

function openSecret(
  sealer: UsersContext['sealer'],
  { id, secret_sealed: sealed }: Pick<Factor, 'id' | 'secret_sealed'>,
): string | undefined {
  return sealed === null ? undefined : sealer.tryOpen(sealed, toSecretCell(id))
}

/** A code of an authenticator app that was not used before. */
export interface FoundCode {
  readonly factorId: string
  readonly step: number
}

/** Finds the authenticator app whose code this is. */
export function findTotp(
  { sealer, clock }: Pick<UsersContext, 'sealer' | 'clock'>,
  factors: readonly Factor[],
  code: string,
): FoundCode | undefined {
  for (const factor of factors) {
    const secret = openSecret(sealer, factor)
    const times = { now: clock(), lastStep: factor.last_step }
    const step = secret === undefined ? undefined : findTotpStep(secret, code, times)
    if (step !== undefined) return { factorId: factor.id, step }
  }
  return undefined
}

/** Uses a code up by compare-and-set, for all processes: no code of its time or of an earlier one is accepted again. */
export async function consumeTotp(
  trx: Kysely<Schema>,
  { factorId, step }: FoundCode,
  now: number,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('factor')
    .set({ last_step: step, used_at: now })
    .where('id', '=', factorId)
    .where(({ or, eb }) => or([eb('last_step', 'is', null), eb('last_step', '<', step)]))
    .executeTakeFirst()
  return numUpdatedRows === 1n
}
