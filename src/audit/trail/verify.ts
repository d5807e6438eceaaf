import { setImmediate as yieldTurn } from 'node:timers/promises'
import { readFiledPatients } from '../../audit-record/index.ts'
import type { Sealer, Store } from '../../store/index.ts'
import type { KeptRecord } from './find.ts'
import { findLastId, readAfter } from './follow.ts'
import { BEGINNING, computeSealHash, formatHead, isCheckpoint, isGenuine, type Seal } from './seal.ts'

export interface Verification {
  readonly seals: number
  readonly records: number
  /** Records that are not yet sealed. */
  readonly unsealed: number
  /** `number:hash` of the newest seal. */
  readonly head: string | undefined
  /** Empty if nothing was changed. The verification ends after a number of problems. */
  readonly problems: readonly string[]
  /** Whether one of the problems is that the trail does not contain the head that was given. */
  readonly isHeadUnknown?: true
}

const SEALS_AT_ONCE = 100
const MAX_PROBLEMS = 20

export interface VerifyOptions {
  /** An earlier head, from a feed or an earlier verification: finds that the end of the trail was removed. */
  readonly head?: string | undefined
  /** Verifies only that seals and records agree, whatever secret the seals were made with. */
  readonly anySecret?: boolean
}

interface Chain {
  before: Pick<Seal, 'number' | 'hash' | 'last_id'>
  /** Seals that were not made with the secret. */
  foreign: number[]
  seals: number
  records: number
  problems: string[]
  isHeadUnknown?: true
}

/**
 * Recomputes the hash chain over the audit trail. It finds records that were changed, removed, inserted or reordered after they
 * were sealed, records that are filed under other patients, and seals that were not made with the secret.
 */
export async function verifyTrail(
  store: Store,
  sealer: Sealer,
  { head, anySecret = false }: VerifyOptions = {},
): Promise<Verification> {
  const before = (await findCheckpoint(store, anySecret ? undefined : sealer)) ?? BEGINNING
  const chain: Chain = { before, foreign: [], seals: 0, records: 0, problems: [] }
  for (;;) {
    const seals = await readSeals(store, chain.before.number)
    for (const seal of seals) {
      await verifySeal(store, sealer, chain, seal)
      // SQLite answers at once: without a pause, no other request would be served.
      await yieldTurn()
    }
    if (seals.length === 0 || chain.problems.length >= MAX_PROBLEMS) break
  }
  const first = chain.foreign[0]
  const last = chain.foreign.at(-1)
  if (first !== undefined && last !== undefined && !anySecret)
    chain.problems.push(
      `${formatRange('Seal', first, last, 'was')} changed, or made with another SMART_SECRET`,
    )
  if (head !== undefined) await verifyHead(store, chain, head)
  await verifyLoneLinks(store, before.last_id, chain)
  await verifyCursors(store, chain)
  return report(store, chain)
}

function readSeals({ db }: Store, after: number): Promise<readonly Seal[]> {
  return db
    .selectFrom('audit_seal')
    .selectAll()
    .where('number', '>', after)
    .orderBy('number')
    .limit(SEALS_AT_ONCE)
    .execute()
}

async function verifySeal(store: Store, sealer: Sealer, chain: Chain, seal: Seal): Promise<void> {
  const { before, problems } = chain
  chain.before = seal
  if (!isGenuine(sealer, seal)) chain.foreign = [chain.foreign[0] ?? seal.number, seal.number]
  chain.seals += 1
  if (seal.number !== before.number + 1) {
    problems.push(`${formatRange('Seal', before.number + 1, seal.number - 1, 'is')} missing`)
    return
  }
  const records = await readAfter(store, before.last_id, seal.last_id, seal.records + 1)
  chain.records += records.length
  const isSame = computeSealHash(before, records) === seal.hash
  if (!isSame && !(await isRemoved(store, sealer, seal)))
    problems.push(describeDifference(before.last_id + 1, seal, records))
  const misfiled = isSame ? await findMisfiled(store, before.last_id, seal, records) : []
  if (misfiled.length > 0 && !(await isRemoved(store, sealer, seal)))
    problems.push(describeMisfiled(misfiled, seal))
  for (const { id, reason } of records.filter(({ kind }) => kind === 'seal'))
    if (!(await isKnownHead(store, reason ?? '')))
      problems.push(`The seal that record ${id} names has changed`)
}

/**
 * The numbers of the records that are filed under other patients than they name. A record about several patients is found
 * by its links (`audit_event_patient`), which no hash covers; the hash covers the patients themselves.
 */
async function findMisfiled(
  { db }: Store,
  after: number,
  { last_id: end }: Seal,
  records: readonly KeptRecord[],
): Promise<readonly number[]> {
  const links = await db
    .selectFrom('audit_event_patient')
    .selectAll()
    .where('audit_id', '>', after)
    .where('audit_id', '<=', end)
    .execute()
  const expected = new Map(
    records.map(record => [record.id, new Set(record.patients === null ? [] : listLinks(record))]),
  )
  const wrong = links.filter(
    ({ audit_id: id, patient_id: patient, at }) => !expected.get(id)?.delete(formatLink(patient, at)),
  )
  const incomplete = [...expected].filter(([, missing]) => missing.size > 0)
  return [...new Set([...wrong.map(({ audit_id: id }) => id), ...incomplete.map(([id]) => id)])]
}

function listLinks(record: KeptRecord): readonly string[] {
  return readFiledPatients(record).patients.map(patient => formatLink(patient, record.at))
}

function formatLink(patient: string, at: number): string {
  return `${at} ${patient}`
}

function describeMisfiled([first, ...more]: readonly number[], { number }: Seal): string {
  const others = more.length === 0 ? '' : ` and ${more.length} more`
  return `Record ${first}${others} (seal ${number}): filed under other patients`
}

/** Links to records that do not exist would file a later record under a patient. */
async function verifyLoneLinks({ db }: Store, first: number, { before, problems }: Chain): Promise<void> {
  const { count } = await db
    .selectFrom('audit_event_patient')
    .select(({ fn }) => fn.countAll().as('count'))
    .where(({ or, eb }) => or([eb('audit_id', '<=', first), eb('audit_id', '>', before.last_id)]))
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('audit_event').select('id').whereRef('id', '=', 'audit_id'))),
    )
    .executeTakeFirstOrThrow()
  if (Number(count) > 0) problems.push(`Links to patients without a record: ${count}`)
}

/** The seal up to which this deployment has removed records, after their retention time. Without a sealer, any. */
async function findCheckpoint({ db }: Store, sealer: Sealer | undefined): Promise<Seal | undefined> {
  const marked = await db
    .selectFrom('audit_seal')
    .selectAll()
    .where('checkpoint_sealed', 'is not', null)
    .orderBy('number', 'desc')
    .execute()
  return marked.find(seal => !sealer || (isGenuine(sealer, seal) && isCheckpoint(sealer, seal)))
}

/** Records may be removed during the verification. */
async function isRemoved(store: Store, sealer: Sealer, { number }: Seal): Promise<boolean> {
  const checkpoint = await findCheckpoint(store, sealer)
  return checkpoint !== undefined && checkpoint.number >= number
}

function describeDifference(first: number, seal: Seal, records: readonly KeptRecord[]): string {
  const range = `Records ${first} to ${seal.last_id} (seal ${seal.number})`
  if (records.length < seal.records) return `${range}: ${seal.records - records.length} removed`
  return records.length > seal.records ? `${range}: records inserted` : `${range}: changed`
}

const PLURALS = { is: 'are', was: 'were' } as const

function formatRange(what: string, first: number, last: number, verb: keyof typeof PLURALS): string {
  return first === last ? `${what} ${first} ${verb}` : `${what}s ${first} to ${last} ${PLURALS[verb]}`
}

/** True also for a seal whose records were removed after their retention time. */
async function isKnownHead(store: Store, head: string): Promise<boolean> {
  const [number = '', hash] = head.split(':')
  const [first] = await readSeals(store, -1)
  if (Number(number) < (first?.number ?? 0)) return true
  const [seal] = await readSeals(store, Number(number) - 1)
  return seal?.number === Number(number) && seal.hash === hash
}

async function verifyHead(store: Store, chain: Chain, head: string): Promise<void> {
  if (await isKnownHead(store, head)) return
  chain.isHeadUnknown = true
  chain.problems.push(
    `The trail does not contain the head ${head}. Check that you copied it exactly. If you did, the end of the trail was removed, or the trail was replaced`,
  )
}

/** The feeds know the last record that they sent. */
async function verifyCursors(store: Store, { problems }: Chain): Promise<void> {
  const last = await findLastId(store)
  const cursors = await store.db.selectFrom('audit_cursor').selectAll().execute()
  for (const { feed, last_id: sent } of cursors)
    if (sent > last)
      problems.push(`The ${feed} has sent record ${sent}, but the trail ends with record ${last}`)
}

async function report(store: Store, { before, foreign: _, ...chain }: Chain): Promise<Verification> {
  const db = await store.trail.read()
  const { count } = await db
    .selectFrom('audit_event')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('id', '>', before.last_id)
    .executeTakeFirstOrThrow()
  return { ...chain, unsealed: Number(count), head: before === BEGINNING ? undefined : formatHead(before) }
}
