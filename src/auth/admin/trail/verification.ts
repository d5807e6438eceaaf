import { Type } from 'typebox'
import { type Verification, verifyTrail } from '../../../audit/index.ts'
import { DAY_MS, describeError, HOUR_MS, isFailure } from '../../../core/index.ts'
import { formatTime, Members, OneOf, Time } from '../../../endpoint/index.ts'
import type { Sealer, Store } from '../../../store/index.ts'
import { setRuntimeValue } from '../../base/runtime-value.ts'
import {
  type Admin,
  type AdminFailure,
  type AdminOperation,
  failAdmin,
  recordAction,
} from '../base/action.ts'
import type { Attention } from '../subject/attention.ts'
import { defineEndpoint } from '../subject/endpoint.ts'

export const VERIFY_TRAIL: AdminOperation = {
  name: 'audit verify',
  signIn: 'never asks',
  isForAuditors: true,
}

const STATES = ['never', 'running', 'intact', 'unknown-head', 'changed', 'failed'] as const

const Report = Members({
  state: OneOf(STATES, {
    description:
      '`changed`: see `problems`. `unknown-head`: the trail does not contain the head that was given. `failed`: it did not finish.',
  }),
  at: Type.Optional(Time),
  records: Type.Optional(Type.Integer()),
  seals: Type.Optional(Type.Integer()),
  unsealed: Type.Optional(Type.Integer({ description: 'Records that are not yet sealed.' })),
  head: Type.Optional(Type.String({ description: 'Keep it for a later verification.' })),
  problems: Type.Optional(Type.Array(Type.String())),
})

/** A verification that has ended. */
export interface VerifiedTrail extends Omit<Verification, 'isHeadUnknown'> {
  readonly state: 'intact' | 'unknown-head' | 'changed'
}

export interface VerificationReport extends Partial<Omit<VerifiedTrail, 'state'>> {
  readonly state: (typeof STATES)[number]
  /** When it ended, or began. */
  readonly at?: number
}

const NAME = 'audit-verification'

/** A verification that has not ended by then was interrupted. */
const MAX_RUN_MS = HOUR_MS

/** The last verification of the audit trail, by a page, the API or the command line. */
export async function findVerification({
  store,
  clock,
}: Pick<Admin, 'store' | 'clock'>): Promise<VerificationReport> {
  const row = await store.db
    .selectFrom('runtime_value')
    .select(['value', 'changed_at'])
    .where('name', '=', NAME)
    .executeTakeFirst()
  if (!row) return { state: 'never' }
  const report: VerificationReport = { ...JSON.parse(row.value), at: row.changed_at }
  const isInterrupted = report.state === 'running' && clock() - row.changed_at > MAX_RUN_MS
  return isInterrupted ? { ...report, state: 'failed' } : report
}

function keepReport({ db }: Store, report: VerificationReport, now: number): Promise<void> {
  return setRuntimeValue(db, NAME, JSON.stringify(report), now)
}

const RUNNING = JSON.stringify({ state: 'running' } satisfies VerificationReport)

/** Whether this verification may run: one at a time, of all processes. */
async function claimVerification({ store, clock }: Pick<Admin, 'store' | 'clock'>): Promise<boolean> {
  const kept = { value: RUNNING, changed_at: clock(), expires_at: null }
  const { numInsertedOrUpdatedRows } = await store.db
    .insertInto('runtime_value')
    .values({ name: NAME, ...kept })
    .onConflict(conflict =>
      conflict
        .column('name')
        .doUpdateSet(kept)
        .where(({ or, eb }) =>
          or([
            eb('runtime_value.value', '<>', RUNNING),
            eb('runtime_value.changed_at', '<', clock() - MAX_RUN_MS),
          ]),
        ),
    )
    .executeTakeFirstOrThrow()
  return numInsertedOrUpdatedRows === 1n
}

export const HEAD = /^\d{1,15}:[\w-]{43}$/

/** Verifies the audit trail, records that, and keeps the result. */
export async function verifyRecords(
  admin: Admin,
  sealer: Sealer,
  { head }: { readonly head?: string | undefined } = {},
): Promise<VerifiedTrail | AdminFailure> {
  const found = await verifyTrail(admin.store, sealer, { head })
  const { records, seals, problems } = found
  const refused = await recordAction(admin, { operation: VERIFY_TRAIL, after: { records, seals, problems } })
  if (refused) return refused
  const { isHeadUnknown: _, ...counted } = found
  const verified = { ...counted, state: findState(found) }
  await keepReport(admin.store, verified, admin.clock())
  return verified
}

/** A head may be mistyped: alone, it does not prove that the trail was changed. */
function findState({ problems, isHeadUnknown }: Verification): VerifiedTrail['state'] {
  if (problems.length === 0) return 'intact'
  return isHeadUnknown && problems.length === 1 ? 'unknown-head' : 'changed'
}

/** How long a request waits for the result. A long trail takes minutes, and the next request finds the result. */
const WAIT_MS = 3_000

/** Begins a verification, and returns its result or that it is running. */
export async function startVerification(
  admin: Admin,
  sealer: Sealer,
  options: { readonly head?: string | undefined },
): Promise<VerificationReport | AdminFailure> {
  if (!(await admin.mayAct(admin.store.db, VERIFY_TRAIL))) return failAdmin('not-an-administrator')
  if (options.head !== undefined && !HEAD.test(options.head)) return failAdmin('trail-head-malformed')
  if (!(await claimVerification(admin))) return failAdmin('verification-running')
  const verified = verifyRecords(admin, sealer, options)
    .catch((error: unknown) => failAdmin('verification-failed', { error: describeError(error) }))
    .then(async found => {
      if (isFailure(found)) await keepReport(admin.store, { state: 'failed' }, admin.clock())
      return found
    })
  const waited = new Promise<void>(resolve => setTimeout(resolve, WAIT_MS).unref())
  const result = await Promise.race([verified, waited])
  return result && isFailure(result) ? result : findVerification(admin)
}

function describeReport({ at, ...report }: VerificationReport) {
  return { ...report, ...(at !== undefined && { at: formatTime(at) }) }
}

export const verificationEndpoints = [
  defineEndpoint({
    method: 'GET',
    path: '/audit/verification',
    title: 'The last verification of the audit trail',
    result: Report,
    handle: async ({ admin }) => describeReport(await findVerification(admin)),
  }),
  defineEndpoint({
    method: 'POST',
    path: '/audit/verification',
    title: 'Verify that no audit record was changed or removed',
    description:
      'Recomputes the hash chain. For a long trail the response is `running`: GET returns the result later.',
    body: Members({
      head: Type.Optional(
        Type.String({
          pattern: HEAD.source,
          description: 'A head of an earlier verification: also finds records removed from the end.',
        }),
      ),
    }),
    result: Report,
    operation: VERIFY_TRAIL,
    async handle({ admin, context, body }) {
      const report = await startVerification(admin, context.sealer, body)
      return isFailure(report) ? report : describeReport(report)
    },
  }),
]

const VERIFIED_DAYS = 30

export const VERIFICATION_ATTENTION: readonly Attention[] = [
  {
    code: 'trail-off',
    path: '/system',
    action: 'Open',
    find: async ({ context: { settings } }) =>
      settings.audit.kept || !settings.onLoopback ? undefined : 'The audit trail is off.',
  },
  {
    code: 'audit-verification',
    path: '/audit/verify',
    action: 'Verify',
    find: async ({ admin, context: { settings } }) =>
      settings.audit.kept ? describeLast(await findVerification(admin), admin.clock()) : undefined,
  },
]

function describeLast({ state, at = 0 }: VerificationReport, now: number): string | undefined {
  if (state === 'changed') return 'The last verification found that the audit trail was changed.'
  if (state === 'unknown-head')
    return 'The audit trail does not contain the head of the last verification: the head was mistyped, or records were removed.'
  if (state === 'never') return 'The audit trail has never been verified.'
  if (state === 'failed') return 'The last verification of the audit trail did not finish.'
  const days = Math.floor((now - at) / DAY_MS)
  return days < VERIFIED_DAYS ? undefined : `The audit trail was last verified ${days} days ago.`
}
