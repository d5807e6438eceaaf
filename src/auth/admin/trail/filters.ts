import { Type } from 'typebox'
import type { AuditKind, RecordFilter } from '../../../audit/index.ts'
import { DAY_MS, isFailure } from '../../../core/index.ts'
import type { Store } from '../../../store/index.ts'
import type { Fault } from '../../base/fault.ts'
import { type AdminFailure, failAdmin, type Properties } from '../base/action.ts'
import { APP_FILTER } from '../base/find-named.ts'
import type { Filters, Meant, Wanted } from '../subject/filters.ts'
import { type Opened, openList } from '../subject/list.ts'
import { findActor, findClients, findTarget } from './audit-who.ts'

/** The events of the trail, in words. */
export const KINDS: Readonly<Record<AuditKind, string>> = {
  fhir: 'FHIR request',
  login: 'Sign-in',
  logout: 'Sign-out',
  launch: 'Launch',
  authorize: 'Authorization request',
  token: 'Tokens issued',
  refresh: 'Tokens renewed',
  introspect: 'Token introspection',
  revoke: 'Access revoked',
  proposal: 'Proposal of an assistant',
  register: 'App registered',
  admin: 'Administration',
  'session-open': 'App session started',
  'session-renew': 'App session renewed',
  'session-end': 'App session ended',
  api: 'Session API request',
  seal: 'Audit trail sealed',
}

const Instant = Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}(T|$)' })
const INSTANT = 'A date, or a date and time.'

/** A time as a number. A day ends `later` than it begins. */
function readTime(later = 0) {
  return async (_: unknown, text: string) => {
    const at = Date.parse(text)
    return Number.isNaN(at) ? failAdmin('time-malformed') : { found: at + later }
  }
}

/** The filters of the trail, in the order of the page. */
export const TRAIL_FILTERS = {
  kind: {
    schema: Type.Union(Object.entries(KINDS).map(([kind, title]) => Type.Literal(kind, { title }))),
    about: 'The event.',
    label: 'Event',
    all: 'All events',
  },
  outcome: {
    schema: Type.Union([
      Type.Literal('allowed', { title: 'Allowed' }),
      Type.Literal('refused', { title: 'Refused' }),
    ]),
    about: 'Whether the request was allowed.',
    name: 'result',
    option: 'outcome',
    label: 'Result',
    all: 'All results',
  },
  user: {
    schema: Type.String(),
    about:
      'A username, a name, the id of an account, a FHIR user (`Practitioner/1`) or who ran commands (`root@ward-3`).',
    label: 'User',
    names: 'user',
    find: findActor,
  },
  client_id: {
    ...APP_FILTER,
    about: 'The id or the name of an app.',
    find: findClients,
  },
  patient: {
    schema: Type.String(),
    about: 'The id of a patient.',
    label: 'Patient',
    names: 'patient',
    find: async (_: unknown, text: string) => ({ found: [text.replace(/^Patient\//, '')] }),
  },
  target: {
    schema: Type.String(),
    about:
      'Changes to this account (username, name, id), app (id, name) or grant (id). `account/…`, `app/…` and `grant/…` mean one kind only.',
    label: 'Changed account or app',
    find: findTarget,
  },
  launch: { schema: Type.String(), about: 'The id of a launch.', label: 'Launch id' },
  address: {
    schema: Type.String(),
    about:
      'The IP address of the request. Set `since` and `until` too: a search by address reads every record between them.',
    label: 'Address of the request',
  },
  since: { schema: Instant, about: INSTANT, label: 'From (UTC)', find: readTime() },
  before: { schema: Instant, about: INSTANT, name: 'until', label: 'To (UTC)', find: readTime() },
} as const satisfies Filters

const DAY = {
  schema: Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$' }),
  about: 'A day, such as 2026-11-15.',
  isDate: true,
} as const

/** The page has days. The last one ends with its last millisecond. */
export const DAYS = {
  since: { ...TRAIL_FILTERS.since, ...DAY },
  before: { ...TRAIL_FILTERS.before, ...DAY, find: readTime(DAY_MS) },
}

/** The records that the filters of a request mean. */
export function toRecordFilter(meant: Meant<typeof TRAIL_FILTERS>): RecordFilter {
  const { kind, outcome, user, client_id, patient, ...others } = meant
  return {
    events: kind === undefined ? undefined : [{ kind }],
    allowed: outcome === undefined ? undefined : outcome === 'allowed',
    actor: user,
    clients: client_id,
    patients: patient,
    ...others,
  }
}

/** The filters of a command, and who of them is not known. */
export async function readRecordFilter(
  store: Store,
  wanted: Wanted,
): Promise<{ readonly filter: RecordFilter; readonly unknown: readonly Fault[] } | AdminFailure> {
  const opened = await openList(
    { filters: TRAIL_FILTERS },
    { store, actor: { kind: 'command', operator: '' } },
    wanted,
  )
  return isFailure(opened) ? opened : { filter: toRecordFilter(opened.meant), unknown: opened.unknown }
}

/** The filters as the audit trail records them. A text that names nobody may be the name of a patient. */
export function describeMeant({ meant, unknown }: Opened<typeof TRAIL_FILTERS>): Properties {
  const { actor, target, ...filter } = toRecordFilter(meant)
  const { requests, ...changed } = target ?? {}
  return {
    ...filter,
    ...(actor && { actor }),
    ...(target && { target: changed }),
    ...(unknown.length > 0 && { actor: undefined, clients: undefined, target: undefined, unknown: true }),
  }
}
