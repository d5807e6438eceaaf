import type { RecordFilter } from '../../audit/index.ts'
import type { Parameters } from '../parameters.ts'
import { paths } from '../paths.ts'

/** The filters of the activity page. They are in the URL, so that it can be shared. */
export interface View {
  readonly result: 'all' | 'allowed' | 'refused'
  readonly app: string | undefined
  readonly patient: string | undefined
  readonly launch: string | undefined
  /** Older than this record. */
  readonly before: { readonly at: number; readonly id: number } | undefined
}

export function readView(query: Parameters): View {
  const result = query.get('result')
  const [, at, id] = /^(\d{1,15})\.(\d{1,15})$/.exec(query.get('before') ?? '') ?? []
  return {
    result: result === 'allowed' || result === 'refused' ? result : 'all',
    app: readText(query.get('app')),
    patient: readText(query.get('patient')),
    launch: readText(query.get('launch')),
    before: at === undefined ? undefined : { at: Number(at), id: Number(id) },
  }
}

function readText(text: string | undefined): string | undefined {
  const plain = text?.trim()
  return plain === '' ? undefined : plain
}

/** Builds the URL of a view with changes. */
export function buildUrl(view: View, change: Partial<View> = {}): string {
  const { result, app, patient, launch, before } = { ...view, ...change }
  const query = new URLSearchParams()
  if (result !== 'all') query.set('result', result)
  if (app !== undefined) query.set('app', app)
  if (patient !== undefined) query.set('patient', patient)
  if (launch !== undefined) query.set('launch', launch)
  if (before) query.set('before', `${before.at}.${before.id}`)
  const text = query.toString()
  return text === '' ? paths.activity : `${paths.activity}?${text}`
}

export function buildFilter({ app, patient, launch }: View): RecordFilter {
  return {
    events: [{ kind: 'fhir' }],
    client: app,
    launch,
    patients: patient === undefined ? undefined : [patient],
  }
}

export function isNarrowed({ app, patient, launch }: View): boolean {
  return app !== undefined || patient !== undefined || launch !== undefined
}
