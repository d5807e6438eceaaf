import type { RecordFilter } from '../../../audit/index.ts'
import type { Parameters } from '../../parameters.ts'

/** The filters of the page, which are in its URL, and the record after which it begins. */
export interface View {
  readonly fields: Readonly<Record<Field, string>>
  readonly filter: RecordFilter
  readonly after: { readonly at: number; readonly id: number } | undefined
}

const FIELDS = ['kind', 'result', 'user', 'app', 'patient', 'launch', 'since', 'until'] as const
type Field = (typeof FIELDS)[number]

export function readView(form: Parameters): View {
  const read = (name: Field) => form.get(name)?.trim() ?? ''
  const fields = Object.fromEntries(FIELDS.map(name => [name, read(name)])) as Record<Field, string>
  const { kind, result, user, app, patient, launch, since, until } = fields
  const [, at, id] = /^(\d{1,15})\.(\d{1,15})$/.exec(form.get('after') ?? '') ?? []
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
    after: at === undefined ? undefined : { at: Number(at), id: Number(id) },
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

export function buildQuery({ fields }: View, after?: View['after']): string {
  const query = new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== ''))
  if (after) query.set('after', `${after.at}.${after.id}`)
  return query.size === 0 ? '' : `?${query}`
}
