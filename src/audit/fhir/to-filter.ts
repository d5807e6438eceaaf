import { matchesClause, type SearchClause } from '../../fhir/index.ts'
import type { AccessFilter, Constraint } from '../../smart/index.ts'
import type { EventIds } from '../trail/event-ids.ts'
import type { KeptRecord } from '../trail/find.ts'
import type { Outcome, RecordFilter } from '../trail/terms.ts'
import { EVENT_KINDS, OWN_SYSTEMS } from './event-type.ts'
import { toAuditEvent } from './to-audit-event.ts'

export interface DatabaseSearch {
  readonly filter: RecordFilter
  /** The clauses that the database does not evaluate. */
  readonly rest: readonly SearchClause[]
  /** The database also evaluates the access filter. */
  readonly checksAccess: boolean
}

type Translated = { readonly [Name in keyof RecordFilter]?: RecordFilter[Name] }

/** The database evaluates each clause exactly or not at all, and of two that need the same member, the first. */
export function toDatabaseSearch(
  clauses: readonly SearchClause[],
  compartment: string | undefined,
  access: AccessFilter,
  ids: EventIds,
): DatabaseSearch {
  const onlyPatients = listPatients(access)
  let filter: RecordFilter = {
    ...(onlyPatients && { onlyPatients }),
    ...(compartment !== undefined && { patients: [compartment] }),
  }
  const rest = clauses.filter(clause => {
    const translated = translate(clause, filter, ids)
    if (translated) filter = { ...filter, ...translated }
    return translated === undefined
  })
  return { filter, rest, checksAccess: access === 'everything' || access.every(isPatientAlone) }
}

/** Undefined if a constraint does not name a patient. */
function listPatients(access: AccessFilter): readonly string[] | undefined {
  const patients = access === 'everything' ? [undefined] : access.map(({ patient }) => patient)
  return patients.every(patient => patient !== undefined) ? patients : undefined
}

function isPatientAlone({ patient, ...others }: Constraint): boolean {
  return patient !== undefined && Object.values(others).every(it => it === undefined)
}

function translate(clause: SearchClause, found: RecordFilter, ids: EventIds): Translated | undefined {
  switch (clause.kind) {
    case 'date':
      return translateDate(clause, found)
    case 'reference':
      return translateReference(clause, found)
    case 'identifier':
      return translateIdentifier(clause, found)
    case 'token':
      return translateToken(clause, found, ids)
    default:
      return undefined
  }
}

type Clause<Kind> = Extract<SearchClause, { readonly kind: Kind }>

function translateDate({ values }: Clause<'date'>, found: RecordFilter): Translated | undefined {
  const [value, ...more] = values
  if (!value || more.length > 0) return undefined
  const { low, high } = value
  const since = (from: number) => ({ since: Math.max(from, found.since ?? from) })
  const before = (end: number) => ({ before: Math.min(end, found.before ?? end) })
  switch (value.prefix) {
    case 'eq':
    case 'ap':
      return { ...since(low), ...before(high + 1) }
    case 'ge':
      return since(low)
    case 'gt':
    case 'sa':
      return since(high + 1)
    case 'le':
      return before(high + 1)
    case 'lt':
    case 'eb':
      return before(low)
    case 'ne':
      return undefined
  }
}

function translateReference(
  { parameter, values }: Clause<'reference'>,
  found: RecordFilter,
): Translated | undefined {
  const local = values.flatMap(value => (value.kind === 'local' ? [value] : []))
  if (local.length < values.length) return undefined
  if (parameter === 'patient' && !found.patients) return { patients: local.map(({ id }) => id) }
  if (parameter === 'agent' && !found.users)
    return { users: local.flatMap(({ types = AGENTS, id }) => types.map(type => `${type}/${id}`)) }
  return undefined
}

const AGENTS = ['Practitioner', 'PractitionerRole', 'Patient', 'RelatedPerson', 'Organization', 'Device']

function translateIdentifier(
  { parameter, values }: Clause<'identifier'>,
  found: RecordFilter,
): Translated | undefined {
  const [{ system, code } = {}, ...more] = values
  if (code === undefined || more.length > 0) return undefined
  if (parameter === 'agent' && system === OWN_SYSTEMS.client && !found.clients) return { clients: [code] }
  if (parameter === 'entity' && system === OWN_SYSTEMS.launch && found.launch === undefined)
    return { launch: code }
  return undefined
}

/** An event with these members only, for parameters that depend on no others. */
const SAMPLE: KeptRecord = {
  id: 0,
  at: 0,
  server: 'fhir',
  kind: 'fhir',
  interaction: null,
  allowed: true,
  status: 200,
  method: null,
  request: null,
  resource_type: null,
  resource_id: null,
  patient_id: null,
  patients: null,
  client_id: null,
  subject: null,
  fhir_user: null,
  decided_by: null,
  reason: null,
  launch_id: null,
  request_id: null,
  address: null,
  repeats: null,
  details: null,
  delivery_id: null,
  token_id: null,
}

const SAMPLE_OPTIONS = { fhirBaseUrl: '', ids: { format: () => '0' } }

function isMatch(clause: SearchClause, record: Partial<KeptRecord>): boolean {
  return matchesClause(toAuditEvent({ ...SAMPLE, ...record }, SAMPLE_OPTIONS), clause, '') === true
}

const STATUSES: readonly (readonly [Outcome, number])[] = [
  ['0', 200],
  ['4', 400],
  ['8', 500],
]

function translateToken(clause: Clause<'token'>, found: RecordFilter, ids: EventIds): Translated | undefined {
  switch (clause.parameter) {
    case 'type':
    case 'subtype':
    case 'action':
      return {
        events: (found.events ?? EVENT_KINDS).filter(event =>
          isMatch(clause, { ...event, interaction: event.interaction ?? null }),
        ),
      }
    case 'outcome':
      return found.outcomes
        ? undefined
        : { outcomes: STATUSES.filter(([, status]) => isMatch(clause, { status })).map(([code]) => code) }
    case '_id':
      return found.ids || clause.negated
        ? undefined
        : { ids: clause.values.flatMap(({ code = '' }) => ids.parse(code)?.id ?? []) }
    default:
      return undefined
  }
}
