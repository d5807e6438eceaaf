import { isId } from '../../../../fhir/index.ts'
import { formatName, type Person } from '../../../../web/person/index.ts'
import { formatDate, type Html, html } from '../../../../web/ui/index.ts'
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
import { findByIds, searchPatients } from '../../../patients/patients.ts'
import { findSearchFault } from '../../../patients/queries.ts'
import { describeCaller } from '../../base/action.ts'
import type { AdminRequest } from './route.ts'
import { renderLink } from './shell.ts'

/** The patients that a text of a filter means. */
export interface MeantPatients {
  readonly ids: readonly string[]
  readonly found: readonly Person[]
  /** Why patients may be missing. */
  readonly fault: string | undefined
  /** Why others may not have been found: the FHIR server did not answer, or the account may not search. */
  readonly outcome: 'searched' | 'unavailable' | 'not permitted'
}

/** Whether another spelling may find a patient. */
export function isMistyped({ outcome }: MeantPatients): boolean {
  return outcome === 'searched'
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
  const searched = { found: [], outcome: 'searched' } as const
  const id = text.replace(/^Patient\//, '')
  if (id !== text) return { ...searched, ids: [id], fault: undefined }
  const own = isId(text) ? [text] : []
  const fault = findSearchFault(text)
  if (fault !== undefined) return { ...searched, ids: [], fault }
  const right = findRight(request, purpose)
  if (!right)
    return { ids: own, found: [], fault: describeNoRight(request, purpose), outcome: 'not permitted' }
  const list = await searchPatients(await createSearch(request, purpose, right), text)
  if (list.kind === 'unavailable')
    return {
      ids: own,
      found: [],
      fault: `The FHIR server is unavailable, so it is not known whether there is a patient ${text}.`,
      outcome: 'unavailable',
    }
  const { patients, hasMore, isCut } = list
  return {
    ids: [...new Set([...own, ...patients.map(patient => patient.id)])],
    found: patients,
    outcome: 'searched',
    fault: isCut
      ? 'The FHIR server did not return all patients who match. Enter more of the name, or the MRN.'
      : hasMore
        ? `More than ${patients.length} patients match. Enter more of the name, or the MRN.`
        : patients.length === 0
          ? `No patient is known as ${text}.`
          : undefined,
  }
}

function describeNoRight({ context }: AdminRequest, purpose: AdministrationPurpose): string {
  const byId = 'Your account opens no patient records, so it finds none by name or number: enter the FHIR id'
  const hasOther = context.settings.audit.patientSearch && purpose !== 'audit-search'
  return `${byId}${hasOther ? ', which the search of the audit page shows' : ''}.`
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
  { found, outcome }: Pick<MeantPatients, 'found' | 'outcome'> = { found: [], outcome: 'searched' },
): Promise<PatientNames> {
  const known = new Map(found.map(person => [person.id, person]))
  const others = outcome === 'unavailable' ? [] : [...new Set(ids)].filter(id => isId(id) && !known.has(id))
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
  )}.${fault !== undefined && ` ${fault}`}</p>`
}

/** The patients that a question may mean, as the portal lists them: one is to be chosen. */
export function renderPatientChoice(
  { found, fault }: MeantPatients,
  { now, build }: { readonly now: number; readonly build: (patient: string) => string },
): Html {
  const { ids } = compareNames(found)
  return html`<section class="card plistbox" aria-labelledby="which"><div class="plist__found"><h2 id="which">Which patient do you mean?</h2>${fault !== undefined && html`<p>${fault}</p>`}</div>
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
