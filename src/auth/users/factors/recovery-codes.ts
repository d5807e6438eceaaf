import { randomBytes } from 'node:crypto'
import type { Kysely, Transaction } from 'kysely'
import { type Schema, sha256 } from '../../../store/index.ts'
import { encodeBase32 } from './totp.ts'

const CODES = 10
/** 80 bits: nobody can guess a code from its hash. */
const CODE_BYTES = 10

/** Replaces the recovery codes of a user, and returns the new ones: only their hashes are stored. */
export async function replaceRecoveryCodes(
  trx: Transaction<Schema>,
  userId: string,
): Promise<readonly string[]> {
  const codes = Array.from({ length: CODES }, () => encodeBase32(randomBytes(CODE_BYTES)).toLowerCase())
  await trx.deleteFrom('recovery_code').where('clinician_id', '=', userId).execute()
  await trx
    .insertInto('recovery_code')
    .values(codes.map(code => ({ clinician_id: userId, code_hash: sha256(code) })))
    .execute()
  return codes.map(code => code.replace(/.{4}(?=.)/g, '$&-'))
}

/** Whether a text is written like a recovery code. Case, spaces and dashes do not matter. */
export function readRecoveryCode(text: string): string | undefined {
  const code = text.toLowerCase().replace(/[\s-]/g, '')
  return /^[a-z2-7]{16}$/.test(code) ? code : undefined
}

export async function hasRecoveryCode(db: Kysely<Schema>, userId: string, code: string): Promise<boolean> {
  const row = await db
    .selectFrom('recovery_code')
    .select('code_hash')
    .where('clinician_id', '=', userId)
    .where('code_hash', '=', sha256(code))
    .executeTakeFirst()
  return row !== undefined
}

/** Uses a code up by compare-and-set. */
export async function consumeRecoveryCode(
  trx: Kysely<Schema>,
  userId: string,
  code: string,
): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('recovery_code')
    .where('clinician_id', '=', userId)
    .where('code_hash', '=', sha256(code))
    .executeTakeFirst()
  return numDeletedRows === 1n
}

export async function countRecoveryCodes(db: Kysely<Schema>, userId: string): Promise<number> {
  const { count } = await db
    .selectFrom('recovery_code')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('clinician_id', '=', userId)
    .executeTakeFirstOrThrow()
  return Number(count)
}
