import { setTimeout as pause } from 'node:timers/promises'
import { auditEventOf, findRecords, type KeptRecord, type RecordFilter } from '../../audit/index.ts'
import type { Store } from '../../store/index.ts'
import { type Arguments, type Command, type Io, misuse } from '../command.ts'
import { withStore } from '../with-store.ts'

/** `sallyport audit`: the trail as lines, or as FHIR AuditEvents. */
export const audit: Command = {
  name: 'audit',
  summary: 'List what happened: logins, launches, tokens, sessions and FHIR requests',
  usage: `
Usage: npm run -s sallyport -- audit [options]

Prints the newest records of the audit trail, the newest last. One line each: time, result and status, what it was, the
patient, the app, the launch, and what decided or why it was refused.

  --since <when>      only from then on: 90s, 15m, 2h, 7d, or a date (2026-11-15, 2026-11-15T04:00Z)
  --patient <id>      only of this patient
  --client <id>       only of this app
  --launch <id>       only what follows from this launch
  --outcome <which>   allowed or refused
  --kind <which>      fhir, login, logout, launch, authorize, token, refresh, revoke, session-open,
                      session-renew, session-end or api
  --limit <number>    at most so many, 100 unless told
  --json              one FHIR AuditEvent a line
  --follow            go on with what comes, until Ctrl-C`,
  options: {
    since: { type: 'string' },
    patient: { type: 'string' },
    client: { type: 'string' },
    launch: { type: 'string' },
    outcome: { type: 'string' },
    kind: { type: 'string' },
    limit: { type: 'string' },
    json: { type: 'boolean' },
    follow: { type: 'boolean' },
  },
  positionals: { min: 0, max: 0 },
  async run(args, io) {
    const filter = filterOf(args, Date.now())
    const limit = limitOf(args)
    const print = printer(io, args.values.json === true)
    await withStore(io, async store => {
      const found = await findRecords(store, { ...filter, limit })
      for (const record of found.reverse()) print(record)
      if (args.values.follow === true) await follow(store, filter, found, print)
    })
    return 0
  },
}

const LOOK_MS = 500
/** Records of other instances may come late by this much. */
const LATE_MS = 5000

async function follow(
  store: Store,
  filter: RecordFilter,
  shown: readonly KeptRecord[],
  print: (record: KeptRecord) => void,
): Promise<never> {
  let seen = new Map(shown.map(record => [record.id, record.at]))
  let newest = shown.at(-1)?.at ?? Date.now()
  for (;;) {
    await pause(LOOK_MS)
    const since = Math.max(filter.since ?? 0, newest - LATE_MS)
    const found = await findRecords(store, { ...filter, since, order: 'oldest', limit: 10_000 })
    for (const record of found) if (!seen.has(record.id)) print(record)
    newest = Math.max(newest, ...found.map(record => record.at))
    seen = new Map([...seen, ...found.map(({ id, at }) => [id, at] as const)].filter(([, at]) => at >= since))
  }
}

function printer({ stdout }: Io, asJson: boolean): (record: KeptRecord) => void {
  return record => {
    stdout.write(`${asJson ? JSON.stringify(auditEventOf(record)) : lineOf(record)}\n`)
  }
}

function lineOf(record: KeptRecord): string {
  const { at, allowed, status, kind, method, request, decided_by, reason } = record
  const what = kind === 'fhir' || kind === 'api' ? `${method ?? ''} ${request || '[base]'}` : kind
  const facts = [
    record.patient_id && `patient=${record.patient_id}`,
    record.patients && `patients=${record.patients.trim().replaceAll(' ', ',')}`,
    record.client_id && `client=${record.client_id}`,
    record.fhir_user && `user=${record.fhir_user}`,
    record.launch_id && `launch=${record.launch_id}`,
    allowed ? decided_by && `by=${decided_by}` : reason,
  ]
  const result = `${allowed ? 'allowed' : 'refused'} ${status}`
  return [new Date(at).toISOString(), result, what, ...facts.filter(Boolean)].join('  ')
}

function filterOf({ values }: Arguments, now: number): RecordFilter {
  const { since, patient, client, launch, kind, outcome } = values
  if (outcome !== undefined && outcome !== 'allowed' && outcome !== 'refused')
    throw misuse('Cannot use --outcome: expected allowed or refused')
  return {
    since: typeof since === 'string' ? instantOf(since, now) : undefined,
    patients: typeof patient === 'string' ? [patient.replace(/^Patient\//, '')] : undefined,
    client: typeof client === 'string' ? client : undefined,
    launch: typeof launch === 'string' ? launch : undefined,
    kind: typeof kind === 'string' ? kind : undefined,
    allowed: outcome === undefined ? undefined : outcome === 'allowed',
  }
}

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

function instantOf(text: string, now: number): number {
  const [, count, unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
  if (count !== undefined) return now - Number(count) * (UNITS[unit] ?? 0)
  const at = /^\d{4}-\d{2}-\d{2}(T|$)/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(at)) throw misuse('Cannot use --since: expected 90s, 15m, 2h, 7d or a date')
  return at
}

function limitOf({ values }: Arguments): number {
  if (values.limit === undefined) return 100
  const limit = /^\d{1,6}$/.test(String(values.limit)) ? Number(values.limit) : 0
  if (limit < 1) throw misuse('Cannot use --limit: expected a whole number from 1')
  return limit
}
