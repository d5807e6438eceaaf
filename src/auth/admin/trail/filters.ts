import { Type } from 'typebox'
import type { AuditKind, RecordFilter } from '../../../audit/index.ts'
import type { Store } from '../../../store/index.ts'
import { type AdminFailure, failAdmin, type Properties } from '../base/action.ts'
import { findApps } from '../base/find-named.ts'
import type { Wanted } from '../subject/list.ts'
import { findActor, findTarget } from './audit-who.ts'

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
  },
  client_id: {
    schema: Type.String(),
    about: 'The id or the name of an app.',
    name: 'app',
    option: 'client',
    label: 'App',
  },
  patient: { schema: Type.String(), about: 'The id of a patient.', label: 'Patient' },
  target: {
    schema: Type.String(),
    about:
      'Changes to this account (username, name, id), app (id, name) or grant (id). `account/…`, `app/…` and `grant/…` mean one kind only.',
    label: 'Changed account or app',
  },
  launch: { schema: Type.String(), about: 'The id of a launch.', label: 'Launch id' },
  address: {
    schema: Type.String(),
    about:
      'The IP address of the request. Set `since` and `until` too: a search by address reads every record between them.',
    label: 'Address of the request',
  },
  since: { schema: Instant, about: INSTANT, label: 'From (UTC)' },
  before: { schema: Instant, about: INSTANT, name: 'until', label: 'To (UTC)' },
}

const DAY = {
  schema: Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$' }),
  about: 'A day, such as 2026-11-15.',
  isDate: true,
} as const

/** The page has days. */
export const PAGE_FILTERS = {
  ...TRAIL_FILTERS,
  since: { ...TRAIL_FILTERS.since, ...DAY },
  before: { ...TRAIL_FILTERS.before, ...DAY },
}

/** Records that a request asks for. */
export interface WantedRecords {
  readonly filter: RecordFilter
  /** The user, the app and the target that nobody knows, as they were typed. */
  readonly unknown: readonly string[]
}

/** `end`: how much later than `before` records may be. `patients`: those that the text of the page means. */
export async function readTrailFilters(
  store: Store,
  { since, before, kind, outcome, patient, launch, address, ...names }: Wanted<typeof TRAIL_FILTERS>,
  { end = 0, patients }: { readonly end?: number; readonly patients?: readonly string[] | undefined } = {},
): Promise<WantedRecords | AdminFailure> {
  const [from, until] = [since, before].map(text => (text === undefined ? undefined : Date.parse(text)))
  if (Number.isNaN(from) || Number.isNaN(until)) return failAdmin('time-malformed')
  const { unknown, ...who } = await findWho(store, { ...names, app: names.client_id })
  return {
    unknown,
    filter: {
      events: kind === undefined ? undefined : [{ kind }],
      allowed: outcome === undefined ? undefined : outcome === 'allowed',
      ...who,
      patients: patients ?? (patient === undefined ? undefined : [patient.replace(/^Patient\//, '')]),
      launch,
      address,
      since: from,
      before: until === undefined ? undefined : until + end,
    },
  }
}

interface Who extends Pick<RecordFilter, 'actor' | 'clients' | 'target'> {
  readonly unknown: readonly string[]
}

/** Resolves the names of a user, of an app, and of an account or app that was changed. */
async function findWho(
  store: Store,
  { user, app, target }: Readonly<Partial<Record<'user' | 'app' | 'target', string | undefined>>>,
): Promise<Who> {
  const [actor, apps, changed] = await Promise.all([
    user === undefined ? undefined : findActor(store, user),
    app === undefined ? undefined : findApps(store, app),
    target === undefined ? undefined : findTarget(store, target),
  ])
  const unknown = [actor?.isUnknown && user, apps?.isUnknown && app, changed?.isUnknown && target]
  return {
    actor: actor?.filter,
    clients: apps?.filter,
    target: changed?.filter,
    unknown: unknown.filter(name => typeof name === 'string'),
  }
}

/** Somebody who reads "no record" must not think that a known user did nothing. */
export function describeUnknown(unknown: readonly string[]): string {
  return `no account, app, FHIR user or operator is known as ${unknown.join(' or ')}`
}

/** The filter as the audit trail records it. A text that names nobody may be the name of a patient. */
export function describeFilter({ filter: { actor, target, ...filter }, unknown }: WantedRecords): Properties {
  const { requests, ...changed } = target ?? {}
  return {
    ...filter,
    ...(actor && { actor }),
    ...(target && { target: changed }),
    ...(unknown.length > 0 && { actor: undefined, clients: undefined, target: undefined, unknown: true }),
  }
}
