/**
 * The texts about scopes on the consent page and wherever the access of an app is described: kinds of data and actions.
 * The other texts of the page are in page.ts and rows.ts.
 */
import { findOwn } from '../../core/index.ts'
import { type Permission, parseScopes, type ResourceScope } from '../../smart/index.ts'
import { listCategories, type OFFERED_TYPES } from './offered.ts'
import { ADMIN_READ_SCOPE, ADMIN_SCOPE, AUDIT_SCOPE } from './program-scopes.ts'

/** A kind of data, described for clinicians. */
interface Kind {
  readonly title: string
  readonly text: string
  /** For use in a sentence, such as "Reads conditions and medicines"; by default the title. */
  readonly noun?: string
}

const KINDS: Readonly<Record<(typeof OFFERED_TYPES)[number], Kind>> = {
  Patient: { title: 'Personal details', text: 'Name, birth date, sex, address and contact details.' },
  Condition: { title: 'Conditions', text: 'Problems and diagnoses, past and present.' },
  MedicationRequest: {
    title: 'Medicines prescribed',
    text: 'Name, dose and instructions of each prescription.',
    noun: 'prescriptions',
  },
  Observation: {
    title: 'Measurements and results',
    text: 'Vital signs, laboratory results, social history and questionnaires.',
    noun: 'measurements',
  },
  AllergyIntolerance: { title: 'Allergies', text: 'Allergies and intolerances, with their reactions.' },
  Immunization: { title: 'Vaccinations', text: 'Vaccines given, and when.' },
  Procedure: { title: 'Procedures', text: 'Operations and other treatments.' },
  DiagnosticReport: {
    title: 'Reports',
    text: 'Laboratory, imaging and other reports with their conclusions.',
  },
  DocumentReference: {
    title: 'Notes and documents',
    text: 'Clinical notes, letters and scanned documents.',
    noun: 'documents',
  },
  Encounter: { title: 'Visits', text: 'Visits and stays, with dates and places.' },
  CarePlan: { title: 'Care plans', text: 'Treatment and activities that are planned.' },
  CareTeam: { title: 'Care teams', text: 'The people involved in the care.' },
  Goal: { title: 'Goals', text: 'The aims of the treatment.' },
  MedicationDispense: {
    title: 'Medicines dispensed',
    text: 'Medicines supplied by a pharmacy.',
    noun: 'dispensed medicines',
  },
  MedicationStatement: { title: 'Medicines taken', text: 'Medicines reported as taken.' },
  Medication: {
    title: 'Names of medicines',
    text: 'Names, strengths and forms of the medicines that prescriptions refer to.',
  },
  ServiceRequest: { title: 'Orders', text: 'Referrals and orders for tests and treatment.' },
  Specimen: { title: 'Specimens', text: 'Samples that were taken.' },
  ImagingStudy: { title: 'Images', text: 'Imaging studies, such as X-rays.' },
  Device: { title: 'Devices', text: 'Implants and other devices.' },
  QuestionnaireResponse: { title: 'Questionnaires', text: 'Answers to questionnaires.' },
  Appointment: { title: 'Appointments', text: 'Planned visits.' },
  Coverage: { title: 'Insurance', text: 'Who pays for the care.' },
  RelatedPerson: { title: 'Relatives', text: 'Relatives and carers.' },
  Provenance: { title: 'Sources of entries', text: 'Who recorded each entry, and when.' },
}

const EVERYTHING = {
  title: 'Everything in the record',
  text: 'All kinds of data, including kinds that are added later.',
  noun: 'everything in the record, including kinds of data that are added later',
}

export function describeKind(type: string): Required<Kind> {
  if (type === '*') return EVERYTHING
  const kind = isOffered(type) ? KINDS[type] : undefined
  if (kind) return { noun: kind.title.toLowerCase(), ...kind }
  const title = type.replace(/(?<=[a-z])[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
  return { title, text: `Entries of the kind “${title}”.`, noun: `${title.toLowerCase()} entries` }
}

function isOffered(type: string): type is keyof typeof KINDS {
  return Object.hasOwn(KINDS, type)
}

/** Titles of the categories, by their codes. */
const CATEGORIES: Readonly<Record<string, string>> = {
  'problem-list-item': 'Problem list',
  'encounter-diagnosis': 'Diagnoses made at a visit',
  'health-concern': 'Health concerns',
  'vital-signs': 'Vital signs',
  laboratory: 'Laboratory results',
  'social-history': 'Social history',
  survey: 'Questionnaires',
  sdoh: 'Social needs',
  'clinical-test': 'Clinical tests',
}

/** Describes a category that can be approved separately, by its token: `system|code`. */
export function describeCategory(type: string, token: string): string | undefined {
  return listCategories(type).includes(token) ? CATEGORIES[token.split('|')[1] ?? ''] : undefined
}

/** The name of a category in a sentence, by its code: "vital signs". */
export function nameCategory(type: string, code: string): string | undefined {
  const token = listCategories(type).find(known => known.endsWith(`|${code}`))
  return token === undefined ? undefined : describeCategory(type, token)?.toLowerCase()
}

const VERBS: Readonly<Record<Permission, string>> = {
  r: 'read',
  s: 'search',
  c: 'add',
  u: 'change',
  d: 'delete',
}

const ORDER: readonly Permission[] = ['r', 's', 'c', 'u', 'd']

/** Describes permissions as in "Read and search" or "Add, change and delete". `r` may include the search. */
export function describePermissions(
  permissions: ReadonlySet<Permission>,
  searchPermission: 'r' | 's',
): string {
  const meant =
    searchPermission === 'r' && permissions.has('r')
      ? new Set<Permission>([...permissions, 's'])
      : permissions
  return capitalize(
    joinWithAnd(ORDER.filter(permission => meant.has(permission)).map(permission => VERBS[permission])),
  )
}

/** Describes the data of a scope: "Conditions", or "Measurements and results: Laboratory results". */
export function describeScope({ type, query }: ResourceScope): string {
  const { title } = describeKind(type)
  return query.length === 0 ? title : `${title}: ${query.map(pair => describeFilter(type, pair)).join(', ')}`
}

function describeFilter(type: string, [name, value]: readonly [string, string]): string {
  const category = name === 'category' ? describeCategory(type, value) : undefined
  return category ?? `only where ${name} is ${value}`
}

/** What an app that writes can do to the record. */
export function describeWrite(permissions: ReadonlySet<Permission>): string {
  const added = permissions.has('c') ? 'New entries become part of the record. ' : ''
  if (permissions.has('u') && permissions.has('d'))
    return `${added}The app can change and delete existing entries. Earlier versions are kept.`
  if (permissions.has('u')) return `${added}The app can change existing entries but cannot delete them.`
  if (permissions.has('d')) return `${added}The app can delete existing entries but cannot change them.`
  return `${added}The app cannot change or delete existing entries.`
}

/** What happens if a patient or relative does not select a row that writes. */
export function describeWithoutWrite(permissions: ReadonlySet<Permission>): string {
  const verbs = describePermissions(permissions, 's').toLowerCase().replace(' and ', ' or ')
  return `If you leave this out, the app cannot ${verbs} such entries, and some of its functions may not work.`
}

/** What the scopes of this server itself permit. */
const OWN_ACTIONS: Readonly<Record<string, string>> = {
  [ADMIN_SCOPE]: 'administers this server: users, apps, keys, audit',
  [ADMIN_READ_SCOPE]: 'sees users, apps, keys and audit of this server, and changes nothing',
  [AUDIT_SCOPE]: 'adds records to the audit trail',
  '__launch-contexts.c': 'prepares launches',
}

/**
 * Describes what an app may do, to its user or to others: "Reads conditions and measurements; adds measurements". Also for
 * programs without a user.
 */
export function summarizeScopes(scope: string, user: 'you' | 'they' | 'its users' = 'you'): string {
  const resources = parseScopes(scope).filter(part => part.kind === 'resource')
  const list = (wanted: ResourceScope['context'], where: string) =>
    listActions(resources.filter(({ context }) => context === wanted)).map(action => `${action}${where}`)
  const actions = [
    ...list('patient', ''),
    ...list('user', `, in every record ${user} may open`),
    ...list('system', ', of every patient'),
  ]
  const own = scope.split(' ').flatMap(part => findOwn(OWN_ACTIONS, part) ?? [])
  const known = own.length === 0 ? [`knows who ${user} are`] : own
  return capitalize((actions.length === 0 ? [...known, 'reads no record'] : [...actions, ...own]).join('; '))
}

const ACTIONS: readonly (readonly [verb: string, permissions: readonly Permission[]])[] = [
  ['reads', ['r', 's']],
  ['adds', ['c']],
  ['changes', ['u']],
  ['deletes', ['d']],
]

/** Describes what a user did not allow, after "did not allow": "laboratory results and adding measurements". */
export function describeDeclined(scope: string): string {
  const resources = parseScopes(scope).filter(part => part.kind === 'resource')
  return joinWithAnd([
    ...listNouns(resources, ['r', 's']),
    ...listActions(resources, WRITING),
    ...(scope.split(' ').includes('offline_access') ? ['access while the user is away'] : []),
  ])
}

const WRITING: typeof ACTIONS = [
  ['adding', ['c']],
  ['changing', ['u']],
  ['deleting', ['d']],
]

/** What an app may read of somebody, in a sentence: "problems and measurements". Empty: nothing. */
export function describeReading(scope: string): string {
  const nouns = listNouns(
    parseScopes(scope).filter(part => part.kind === 'resource'),
    ['r', 's'],
  )
  return nouns.includes(describeKind('*').noun) ? 'the whole record' : joinWithAnd(nouns)
}

/** Combines verbs about the same data: "adds and changes measurements". */
function listActions(scopes: readonly ResourceScope[], actions = ACTIONS): readonly string[] {
  const verbs = Map.groupBy(actions, ([, permissions]) => joinWithAnd(listNouns(scopes, permissions)))
  return [...verbs]
    .filter(([nouns]) => nouns !== '')
    .map(([nouns, same]) => `${joinWithAnd(same.map(([verb]) => verb))} ${nouns}`)
}

function listNouns(scopes: readonly ResourceScope[], permissions: readonly Permission[]): readonly string[] {
  const permitting = scopes.filter(scope => permissions.some(permission => scope.permissions.has(permission)))
  const wholes = new Set(permitting.flatMap(({ type, query }) => (query.length === 0 ? type : [])))
  const nouns = wholes.has('*')
    ? [describeKind('*').noun]
    : permitting.filter(({ type, query }) => query.length === 0 || !wholes.has(type)).flatMap(nameContent)
  return [...new Set(nouns)]
}

/** "laboratory results", or "some measurements" if something else than known categories limits the scope. */
function nameContent({ type, query }: ResourceScope): readonly string[] {
  const { noun } = describeKind(type)
  if (query.length === 0) return [noun]
  const values = query.flatMap(([name, value]) => (name === 'category' ? value.split(',') : []))
  const categories = values.flatMap(value => describeCategory(type, value)?.toLowerCase() ?? [])
  const isNamed = query.length === 1 && values.length > 0 && categories.length === values.length
  return isNamed ? categories : [`some ${noun}`]
}

export function joinWithAnd(words: readonly string[]): string {
  const last = words.at(-1) ?? ''
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} and ${last}`
}

function capitalize(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
