import { findOwn, toSentence } from '../../../../core/index.ts'
import { isId } from '../../../../fhir/index.ts'
import { formatName, type Person } from '../../../../web/person/index.ts'
import { formatDate, type Html, html } from '../../../../web/ui/index.ts'
import { type Fault, makeFault } from '../../../base/fault.ts'
import {
  type AuditedRead,
  createFhirReader,
  createNameReader,
  createUserLookup,
  type FhirReadResult,
} from '../../../base/fhir-reader.ts'
import { paths } from '../../../base/paths.ts'
import type { AdministrationPurpose } from '../../../base/purposes.ts'
import { opensRecords } from '../../../base/user.ts'
import { renderFacts, renderPatientHead } from '../../../pages/parts/patient-list.ts'
import { compareNames } from '../../../patients/namesakes.ts'
import { findByIds, type PatientPage, searchPatients } from '../../../patients/patients.ts'
import { findSearchFault } from '../../../patients/queries.ts'
import { type AdminFailure, describeCaller, failAdmin } from '../../base/action.ts'
import type { AdminRequest } from './route.ts'
import { renderLink } from './shell.ts'

/** The patients that a text of a filter means. */
export interface MeantPatients {
  readonly ids: readonly string[]
  readonly found: readonly Person[]
  /** Why patients may be missing. */
  readonly fault: Fault | undefined
}

/** The reasons why patients were not looked up, with those of the failure. */
const NOT_LOOKED_UP = {
  'patients-unavailable': 'patient-search-unavailable',
  'patients-hidden': 'patient-search-not-permitted',
  'patients-hidden-here': 'patient-search-not-permitted',
} as const

/** Whether another spelling may find a patient. */
export function isMistyped({ fault }: MeantPatients): boolean {
  return findOwn(NOT_LOOKED_UP, fault?.reason ?? '') === undefined
}

export function refusePatients({ fault }: MeantPatients): AdminFailure {
  return failAdmin(findOwn(NOT_LOOKED_UP, fault?.reason ?? '') ?? 'patient-not-found', { fault: fault ?? [] })
}

/** Which patients somebody may find by name or number: whom the policy permits, anybody for the audit trail, or nobody. */
function findRight(
  { context, login }: AdminRequest,
  purpose: AdministrationPurpose,
): 'own' | 'for the audit' | undefined {
  if (opensRecords(login.user)) return 'own'
  return purpose === 'audit-search' && context.settings.audit.patientSearch ? 'for the audit' : undefined
}

/** The label of a field that means patients. */
export function namePatientField(
  request: AdminRequest,
  purpose: AdministrationPurpose = 'patient-search',
): string {
  return findRight(request, purpose) ? 'Patient (name, MRN or id)' : 'Patient (FHIR id)'
}

/**
 * Finds the patients that a text means: an id (`Patient/1` is not searched), or a name, MRN or birth date, as in the portal. The
 * FHIR server records the search as one of the administrator, who gets the patients whom the policy permits. Accounts that open
 * no records find patients for the audit trail only, if the setting permits it, and get no more than who they are (ADMIN-29).
 */
export async function findMeantPatients(
  request: AdminRequest,
  purpose: AdministrationPurpose,
  text: string,
): Promise<MeantPatients> {
  const id = text.replace(/^Patient\//, '')
  if (id !== text) return { ids: [id], found: [], fault: undefined }
  const tooLong = findSearchFault(text)
  if (tooLong) return { ids: [], found: [], fault: tooLong }
  const ids = isId(text) ? [text] : []
  const right = findRight(request, purpose)
  const isHere = request.context.settings.audit.patientSearch && purpose !== 'audit-search'
  if (!right) return { ids, found: [], fault: makeFault(isHere ? 'patients-hidden-here' : 'patients-hidden') }
  const list = await searchPatients(await createSearch(request, purpose, right), text)
  if (list.kind === 'unavailable')
    return { ids, found: [], fault: makeFault('patients-unavailable', { name: text }) }
  const { patients: found } = list
  return {
    ids: [...new Set([...ids, ...found.map(patient => patient.id)])],
    found,
    fault: findFault(list, text),
  }
}

function findFault({ patients, hasMore, isCut }: PatientPage, name: string): Fault | undefined {
  if (isCut) return makeFault('patients-cut')
  if (hasMore) return makeFault('patients-many', { most: patients.length })
  return patients.length === 0 ? makeFault('patient-not-known', { name }) : undefined
}

/** What identifies a person, and nothing else. */
const IDENTIFYING = '_elements=id,name,birthDate,identifier'

async function createSearch(
  { context, request, login, admin }: AdminRequest,
  purpose: AdministrationPurpose,
  right: 'own' | 'for the audit',
): Promise<(query: string) => Promise<FhirReadResult>> {
  if (right === 'own') return createFhirReader(context, login.user, describeLookup(request, purpose))
  const read = await createUserLookup(context, 'Patient', describeCaller(admin, purpose))
  return query => read(`${query}&${IDENTIFYING}`)
}

/** Patients by their ids. */
export type PatientNames = ReadonlyMap<string, Person>

/** Further patients of a page are shown by id. The server of the search may not accept a longer URL. */
const NAMED = 50

/**
 * Finds the patients of a page with one search, as far as the administrator may see them and the FHIR server answers in time. It
 * is not asked for those whom `meant` has, and not at all if it did not answer that search.
 */
export async function findPatientNames(
  { context, request, login }: AdminRequest,
  purpose: AdministrationPurpose,
  ids: Iterable<string>,
  { found, fault }: Pick<MeantPatients, 'found' | 'fault'> = { found: [], fault: undefined },
): Promise<PatientNames> {
  const known = new Map(found.map(person => [person.id, person]))
  const isDown = fault?.reason === 'patients-unavailable'
  const others = isDown ? [] : [...new Set(ids)].filter(id => isId(id) && !known.has(id))
  if (others.length === 0) return known
  const read = await createNameReader(context, login.user, describeLookup(request, purpose))
  for (const person of await findByIds(read, others.slice(0, NAMED))) known.set(person.id, person)
  return known
}

/** The name, if it is known, and the id. */
export function renderPatient(id: string, names: PatientNames): Html {
  const person = names.get(id)
  return person
    ? html`<bdi>${formatName(person.name)}</bdi><span class="sub"><code>${id}</code></span>`
    : html`<code>${id}</code>`
}

/** How the audit trail tells the requests of the administration's pages from those of the portal. */
export function describeLookup({ ip }: AdminRequest['request'], purpose: AdministrationPurpose): AuditedRead {
  return { purpose, address: ip }
}

/** The patients by name, each with a link to the list of that one. */
export function renderMeantPatients(
  { found, fault }: MeantPatients,
  buildPath: (patient: string) => string,
): Html | undefined {
  if (found.length === 0) return undefined
  return html`<p class="small">${found.length === 1 ? 'Patient' : 'Patients'}: ${found.map(
    (person, at) =>
      html`${at > 0 && '; '}${renderLink(buildPath(`Patient/${person.id}`), describePerson(person))}`,
  )}.${fault && ` ${toSentence(fault.text)}`}</p>`
}

/** The patients that a question may mean, as the portal lists them: one is to be chosen. */
export function renderPatientChoice(
  { found, fault }: MeantPatients,
  { now, build }: { readonly now: number; readonly build: (patient: string) => string },
): Html {
  const { ids } = compareNames(found)
  return html`<section class="card plistbox" aria-labelledby="which"><div class="plist__found"><h2 id="which">Which patient do you mean?</h2>${fault && html`<p>${toSentence(fault.text)}</p>`}</div>
${renderPatientHead()}
<ol class="plist" aria-label="Patients">${found.map(
    person => html`<li><a class="prow" href="${paths.admin}${build(`Patient/${person.id}`)}">
${renderFacts(person, { now, alike: ids.has(person.id) })}</a></li>
`,
  )}</ol></section>`
}

function describePerson({ id, name, born, mrn }: Person): string {
  const facts = [
    formatName(name),
    ...(born === undefined ? [] : [`born ${formatDate(born)}`]),
    mrn === undefined ? `id ${id}` : `MRN ${mrn}`,
  ]
  return facts.join(', ')
}
