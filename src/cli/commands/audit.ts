import { createReadStream, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import {
  adoptSeals,
  type EventIds,
  findRecords,
  formatRepeats,
  type KeptRecord,
  openEventIds,
  type RecordFilter,
  toAuditEvent,
  verifyTrail,
} from '../../audit/index.ts'
import {
  type FileCheck,
  readRecordFilter,
  TRAIL_FILTERS,
  TRAIL_HEAD,
  type VerifiedTrail,
} from '../../auth/index.ts'
import { escapeLine, formatCount, HOW, isFailure } from '../../core/index.ts'
import type { Sealer, Store } from '../../store/index.ts'
import {
  type Arguments,
  type Command,
  CommandFailure,
  failMisuse,
  getOptional,
  getText,
  type Io,
  isSet,
  printJson,
} from '../command.ts'
import { parseTime } from '../parse-time.ts'
import { loadSettings, performCommand, recordCommand, withStore } from '../with-store.ts'
import { formatOptions, listOptions, listOptionValues, readOptionFilters } from './filters.ts'

/** Records of other instances may arrive this late. */
const LATE_MS = 5000

type Look = () => Promise<readonly KeptRecord[]>

/** Continues after the newest printed record. Older records that a limit left out are not printed later. */
export async function followTrail(
  store: Store,
  filter: RecordFilter,
  newestShown: KeptRecord | undefined,
  now: number,
): Promise<Look> {
  let newest = newestShown?.at ?? now
  const since = () => Math.max(filter.since ?? 0, newest - LATE_MS)
  const recent = () => findRecords(store, { ...filter, since: since(), order: 'oldest', limit: 10_000 })
  const before = (await recent()).filter(record => newestShown && !isAfter(record, newestShown))
  let seen = new Map(before.map(({ id, at }) => [id, at]))
  return async () => {
    const found = await recent()
    const fresh = found.filter(({ id }) => !seen.has(id))
    newest = Math.max(newest, ...found.map(({ at }) => at))
    seen = new Map(
      [...seen, ...found.map(({ id, at }) => [id, at] as const)].filter(([, at]) => at >= since()),
    )
    return fresh
  }
}

function isAfter(record: KeptRecord, other: KeptRecord): boolean {
  return record.at > other.at || (record.at === other.at && record.id > other.id)
}

const TIMES = {
  since: 'only later records: 90s, 15m, 2h, 7d, or a date (2026-11-15, 2026-11-15T04:00Z)',
  until: 'only earlier records',
} as const

const FILTERS = {
  ...TRAIL_FILTERS,
  since: { ...TRAIL_FILTERS.since, about: TIMES.since },
  before: { ...TRAIL_FILTERS.before, about: TIMES.until },
}

const audit: Command = {
  usage: `
Usage: ${HOW} audit [options]

Prints the newest records of the audit trail, the newest last. Each line has the time, the result and status, the event,
the patient, the app, the user or who ran a command, the launch, the address, and the scope that allowed the request or the
reason for the refusal.

Options:
${formatOptions([
  ...listOptions(FILTERS),
  { usage: '--limit <number>', text: 'maximum number of records (default: 100)' },
  { usage: '--json', text: 'print each record as a FHIR AuditEvent on one line' },
  { usage: '--follow', text: 'keep printing new records, until Ctrl-C' },
])}`,
  listValues: async () => listOptionValues(FILTERS),
  async run(args, io) {
    const now = Date.now()
    const wanted = readOptionFilters(FILTERS, args, (option, text) =>
      option in TIMES ? new Date(parseTime(option, text, now)).toISOString() : text,
    )
    const limit = readLimit(args)
    return withStore(io, async store => {
      const read = await readRecordFilter(store, wanted)
      if (isFailure(read)) throw failMisuse(`Cannot list records: ${read.text}`)
      const { filter, unknown } = read
      const ids = await openEventIds(store)
      const print = createPrinter(io, store, isSet(args, 'json'), ids)
      const found = await findRecords(store, { ...filter, limit })
      await print(found.toReversed())
      if (found.length === 0 && unknown.length > 0)
        throw new CommandFailure(`Cannot list records: ${unknown.map(({ text }) => text).join('; ')}`)
      if (found.length === 0) io.stderr.write('The audit trail contains no such record.\n')
      if (isSet(args, 'follow')) await follow(store, filter, found[0], print)
      return 0 as const
    })
  },
}

const LOOK_MS = 500

async function follow(
  store: Store,
  filter: RecordFilter,
  newest: KeptRecord | undefined,
  print: Print,
): Promise<never> {
  const look = await followTrail(store, filter, newest, Date.now())
  for (;;) {
    await pause(LOOK_MS)
    await print(await look())
  }
}

type Print = (records: readonly KeptRecord[]) => Promise<void>

function createPrinter(io: Io, store: Store, asJson: boolean, ids: EventIds): Print {
  const settings = loadSettings(io)
  return async records => {
    const { findUsernames } = await import('../../auth/index.ts')
    const usernames = await findUsernames(store, records)
    for (const record of records) {
      const line = asJson
        ? JSON.stringify(toAuditEvent(record, { ...settings, ids }))
        : formatLine(record, usernames.get(record.subject ?? ''))
      io.stdout.write(`${line}\n`)
    }
  }
}

function readLimit(args: Arguments): number {
  const text = getText(args, 'limit') ?? '100'
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (limit < 1) throw failMisuse('Cannot use --limit: expected a whole number from 1')
  return limit
}

function formatLine(record: KeptRecord, username: string | undefined): string {
  const { at, allowed, status, decided_by, reason, address } = record
  const isCommand = record.method === 'sallyport'
  const facts = [
    record.patient_id && `patient=${record.patient_id}`,
    record.patients && `patients=${shortenList(record.patients.trim().split(' '))}`,
    record.client_id && `client=${record.client_id}`,
    username !== undefined && `username=${username}`,
    record.fhir_user && `user=${record.fhir_user}`,
    isCommand && address && `by=${address}`,
    record.launch_id && `launch=${record.launch_id}`,
    !isCommand && address && `from=${address}`,
    allowed && decided_by && `by=${decided_by}`,
    reason,
  ]
  const result = `${allowed ? 'allowed' : 'refused'} ${status}`
  return escapeLine(
    [new Date(at).toISOString(), result, describeEvent(record), ...facts.filter(Boolean)].join('  '),
  )
}

const FEW_PATIENTS = 10

function shortenList(patients: readonly string[]): string {
  const more = patients.length - FEW_PATIENTS
  return more > 0 ? `${patients.slice(0, FEW_PATIENTS)} and ${more} more` : patients.join()
}

function describeEvent({ kind, method, request, repeats }: KeptRecord): string {
  if (repeats !== null) return `${kind} (${formatRepeats(repeats)})`
  const hasRequest = kind === 'fhir' || kind === 'api' || (kind === 'admin' && request !== null)
  return hasRequest ? `${method ?? ''} ${request || '[base]'}`.trimStart() : kind
}

const auditVerify: Command = {
  busy: 'Verifying the trail',
  usage: `
Usage: ${HOW} audit verify [--head <head>] [--adopt] [--json]

Recomputes the hash chain over the audit trail, even while the servers run. Finds records that were changed, removed, inserted,
reordered or filed under other patients after the servers sealed them, which they do about a second after writing. Needs the
SMART_SECRET of the servers.

Options:
  --head <head>   a head that an earlier verification printed, or that a feed received: also finds records removed from the end
  --adopt         after a change of SMART_SECRET: seal the trail with the new secret, if seals and records agree. Otherwise the
                  servers cannot seal further records
  --json          print JSON: the counts, the head and the problems

Exit code: 0 if nothing was changed, otherwise 1.`,
  async run(args, io) {
    const head = getOptional(args, 'head')
    if (head !== undefined && !TRAIL_HEAD.test(head))
      throw failMisuse('Cannot use --head: expected <number>:<hash>')
    const { verifyRecords } = await import('../../auth/index.ts')
    const found = await performCommand(io, 'Cannot verify the audit trail', async (admin, open) => {
      const sealer = await open()
      if (isSet(args, 'adopt')) await adoptTrail(io, admin.store, sealer)
      return verifyRecords(admin, sealer, { head })
    })
    if (isSet(args, 'json')) {
      printJson(io, found)
      return found.problems.length === 0 ? 0 : 1
    }
    for (const problem of found.problems) io.stderr.write(`${problem}\n`)
    io.stdout.write(formatVerification(found))
    return found.problems.length === 0 ? 0 : 1
  },
}

const auditCheckFile: Command = {
  busy: 'Comparing the file with the trail',
  usage: `
Usage: ${HOW} audit check-file <file> [--json]

Compares each record of a file that was exported from this audit trail (NDJSON or CSV) with the current trail, and
prints how many are unchanged, differ or are missing. Imports nothing. Usernames are not compared. Use the version and the FHIR
base URL of the export for NDJSON; CSV does not depend on them.

Options:
  --json   print JSON: the counts, and the first records that differ or are not there

Exit code: 0 if all records are unchanged or older than the records that are kept, otherwise 1.`,
  positionals: { min: 1, max: 1 },
  async run(args, io) {
    const [name = ''] = args.positionals
    const file = resolve(io.cwd, name)
    if (!statSync(file, { throwIfNoEntry: false })?.isFile())
      throw new CommandFailure(`Cannot read ${name}: there is no such file`)
    const { checkFile } = await import('../../auth/index.ts')
    const checked = await performCommand(io, `Cannot check ${name}`, admin =>
      checkFile(admin, createReadStream(file, 'utf8'), loadSettings(io)),
    )
    if (isSet(args, 'json')) printJson(io, checked)
    else io.stdout.write(formatCheck(checked))
    return checked.changed.count + checked.missing.count === 0 ? 0 : 1
  },
}

function formatCheck({ records, unchanged, changed, missing, expired }: FileCheck): string {
  const groups = [
    ['different in the trail', changed],
    ['not in the trail', missing],
    ['older than the trail', expired],
  ] as const
  const lines = groups
    .filter(([, { count }]) => count > 0)
    .map(
      ([text, { count, first }]) =>
        `${count} ${text}: ${first.map(({ id }) => id).join(', ')}${count > first.length ? ', …' : ''}\n`,
    )
  return `${records} records, ${unchanged} unchanged\n${lines.join('')}`
}

async function adoptTrail(io: Io, store: Store, sealer: Sealer): Promise<void> {
  const { problems } = await verifyTrail(store, sealer, { anySecret: true })
  if (problems.length > 0) return
  await store.db.transaction().execute(async trx => {
    await adoptSeals(trx, sealer)
    await recordCommand(io, store, 'audit verify --adopt')(trx)
  })
}

const VERIFIED: Readonly<Record<VerifiedTrail['state'], string>> = {
  intact: 'No change found',
  'unknown-head': 'No change found, but the trail does not contain the head',
  changed: 'The audit trail was changed',
}

function formatVerification({ state, records, seals, unsealed, head }: VerifiedTrail): string {
  const counts = `${formatCount(records, 'record')} in ${formatCount(seals, 'seal')}, ${unsealed} not yet sealed`
  return `${VERIFIED[state]}: ${counts}\n${head === undefined ? '' : `Head: ${head}\n`}`
}

export const commands = { audit, 'audit verify': auditVerify, 'audit check-file': auditCheckFile }
