import type { Sealer } from '../../store/index.ts'
import { KEY_LEAD_MS } from '../oauth/keys/key-ring.ts'
import {
  canOpenSigningKeys,
  makeNextSigningKey,
  withdrawEveryKey,
  withdrawSigningKey,
} from '../oauth/keys/signing-key.ts'
import { type Admin, AdminFailure, type Operation, recordAction } from './action.ts'

export const ROTATE_KEYS: Operation = { name: 'keys rotate', signIn: 'asks' }
export const WITHDRAW_KEY: Operation = { name: 'keys withdraw', signIn: 'asks' }

export interface KeyDescription {
  readonly kid: string
  readonly state: 'signs' | 'next' | 'retired'
  readonly createdAt: number
  readonly signsFrom: number
  readonly retiredAt: number | undefined
}

/** The signing keys, newest first. */
export async function listKeys({
  store,
  clock,
}: Pick<Admin, 'store' | 'clock'>): Promise<readonly KeyDescription[]> {
  const rows = await store.db.selectFrom('signing_key').selectAll().orderBy('generation', 'desc').execute()
  const now = clock()
  const signing = rows.find(row => row.signs_from <= now)
  return rows.map(row => ({
    kid: row.kid,
    state: row === signing ? 'signs' : row.signs_from > now ? 'next' : 'retired',
    createdAt: row.created_at,
    signsFrom: row.signs_from,
    retiredAt: row.retired_at ?? undefined,
  }))
}

/** Publishes a new key, and returns the time from which it signs, when every server has fetched it (KEY-3). */
export async function rotateKeys(
  admin: Admin,
  sealer: Sealer,
): Promise<{ readonly signsFrom: number } | AdminFailure> {
  const fault = await requireSameSecret(admin, sealer)
  if (fault) return fault
  const now = admin.clock()
  const signsFrom = now + KEY_LEAD_MS.byCommand
  const after = { signs_from: new Date(signsFrom).toISOString() }
  const made = await makeNextSigningKey(admin.store, sealer, {
    now,
    signsFrom,
    record: trx => recordAction(admin, { operation: ROTATE_KEYS, after }, trx),
  })
  return made ? { signsFrom } : new AdminFailure('conflict', 'another rotation finished first')
}

/** Removes a leaked key at once. A new key signs from now on (KEY-4). */
export async function withdrawKey(
  admin: Admin,
  sealer: Sealer,
  kid: string,
): Promise<{ readonly kid: string } | AdminFailure> {
  const fault = await requireSameSecret(admin, sealer)
  if (fault) return fault
  const withdrawn = await withdrawSigningKey(admin.store, sealer, {
    kid,
    now: admin.clock(),
    record: trx => recordAction(admin, { operation: WITHDRAW_KEY, target: kid, before: { kid } }, trx),
  })
  return withdrawn ? { kid } : new AdminFailure('not_found', `there is no key ${kid}`)
}

/** Removes all keys, including the app server's, whatever secret encrypted them. */
export function withdrawKeys(admin: Admin, sealer: Sealer): Promise<void> {
  return withdrawEveryKey(admin.store, sealer, admin.clock(), trx =>
    recordAction(admin, { operation: WITHDRAW_KEY, target: '--all' }, trx),
  )
}

const OTHER_SECRET =
  'the keys are encrypted with another SMART_SECRET. Set the SMART_SECRET of the servers, or see: keys withdraw --help'

/** Running servers could not decrypt a key that another secret encrypts. */
async function requireSameSecret({ store }: Admin, sealer: Sealer): Promise<AdminFailure | undefined> {
  return (await canOpenSigningKeys(store, sealer)) ? undefined : new AdminFailure('conflict', OTHER_SECRET)
}
