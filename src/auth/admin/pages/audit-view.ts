import type { RecordFilter } from '../../../audit/index.ts'
import type { Parameters } from '../../parameters.ts'

/** The filters of the page, which are in its URL. */
export interface View {
  readonly fields: Readonly<Record<Field, string>>
  readonly filter: RecordFilter
}

const FIELDS = ['kind', 'result', 'user', 'app', 'patient', 'launch', 'since', 'until'] as const
type Field = (typeof FIELDS)[number]

export function readView(form: Parameters): View {
  const read = (name: Field) => form.get(name)?.trim() ?? ''
  const fields = Object.fromEntries(FIELDS.map(name => [name, read(name)])) as Record<Field, string>
  const { kind, result, user, app, patient, launch, since, until } = fields
  return {
    fields,
    filter: {
      events: kind === '' ? undefined : [{ kind }],
      allowed: result === 'allowed' || result === 'refused' ? result === 'allowed' : undefined,
      users: user === '' ? undefined : [user],
      client: app === '' ? undefined : app,
      patients: patient === '' ? undefined : [patient.replace(/^Patient\//, '')],
      launch: launch === '' ? undefined : launch,
      since: readDay(since),
      before: addDay(readDay(until)),
    },
  }
}

const DAY_MS = 86_400_000

/** Days are UTC days, as the times of the records. */
function readDay(text: string): number | undefined {
  const at = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? undefined : at
}

function addDay(at: number | undefined): number | undefined {
  return at === undefined ? undefined : at + DAY_MS
}

export function buildQuery({ fields }: View, after?: string): string {
  const query = new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== ''))
  if (after !== undefined) query.set('after', after)
  return query.size === 0 ? '' : `?${query}`
}
