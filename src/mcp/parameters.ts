import { findNearest, isRecord } from '../core/index.ts'
import { describeValues, listSearchParameters, type SearchParameter } from '../fhir/index.ts'
import { listRecords, shorten } from './rows.ts'
import type { FhirJson } from './tool.ts'

/** A search parameter that the server offers. */
export interface OfferedParameter {
  readonly name: string
  readonly type: string
  /** `code=http://loinc.org|4548-4`. */
  readonly example: string
}

/** The search parameters of a type that the server offers (CapabilityStatement), and whose values are known. */
export function listOffered(statement: FhirJson, type: string): readonly OfferedParameter[] {
  const [rest] = listRecords(statement.rest)
  const resource = listRecords(rest?.resource).find(it => it.type === type)
  const offered = new Set(
    listRecords(isRecord(resource) ? resource.searchParam : undefined).map(it => it.name),
  )
  return listSearchParameters(type)
    .filter(({ code }) => offered.has(code))
    .map(it => ({ name: it.code, type: it.type, example: `${it.code}=${chooseExample(type, it)}` }))
}

/** Values that are usual in a record. */
const USUAL: Readonly<Record<string, string>> = {
  'Observation.category': 'laboratory',
  'Observation.combo-code': 'http://loinc.org|85354-9',
  'Observation.component-code': 'http://loinc.org|8480-6',
  'Condition.category': 'problem-list-item',
  'Condition.clinical-status': 'active',
  'Condition.verification-status': 'confirmed',
  'AllergyIntolerance.clinical-status': 'active',
  'AllergyIntolerance.verification-status': 'confirmed',
  'Encounter.class': 'AMB',
  'DocumentReference.type': 'http://loinc.org|11506-3',
  'DocumentReference.category': 'clinical-note',
  'Immunization.vaccine-code': 'http://hl7.org/fhir/sid/cvx|140',
  'MedicationRequest.code': 'http://www.nlm.nih.gov/research/umls/rxnorm|860975',
}

/** The state that is searched most, of those that a type has. */
const USUAL_CODES = ['final', 'active', 'finished', 'completed', 'current', 'female', 'home']

const OF_KIND: Readonly<Record<string, string>> = {
  date: 'ge2025-01-01',
  string: 'juniper',
  quantity: 'gt7|http://unitsofmeasure.org|%',
  number: 'gt5',
  uri: 'http://example.org/1',
  composite: 'http://loinc.org|4548-4$gt7',
}

const OF_TYPE: Readonly<Record<string, string>> = {
  boolean: 'true',
  id: '123',
  Identifier: 'http://hospital.example/numbers|123',
  ContactPoint: '555-0100',
}

function chooseExample(type: string, parameter: SearchParameter): string {
  const { code: name, type: kind, target = ['Patient'] } = parameter
  const usual = USUAL[`${type}.${name}`]
  if (usual !== undefined) return usual
  if (kind === 'reference') return `${target.includes('Patient') ? 'Patient' : target[0]}/1`
  if (kind !== 'token') return OF_KIND[kind] ?? '…'
  const { type: valueType, codes } = describeValues(type, parameter)
  const code = USUAL_CODES.find(it => codes.includes(it)) ?? codes[0]
  const isOfResult = name === 'code' && (type === 'Observation' || type === 'DiagnosticReport')
  return (
    code ?? OF_TYPE[valueType] ?? (isOfResult ? 'http://loinc.org|4548-4' : 'http://snomed.info/sct|38341003')
  )
}

/** What models guess, and what it is called. */
const GUESSES: Readonly<Record<string, readonly string[]>> = {
  loinc: ['code'],
  snomed: ['code'],
  icd10: ['code'],
  rxnorm: ['code'],
  text: ['code'],
  name: ['code'],
  value: ['value-quantity'],
  when: ['date', 'onset-date', 'authoredon'],
  start: ['date', 'onset-date', 'authoredon'],
  end: ['date', 'abatement-date'],
  from: ['date', 'onset-date', 'authoredon'],
  to: ['date', 'onset-date', 'authoredon'],
  date: ['onset-date', 'authoredon', 'recorded-date'],
  mrn: ['identifier'],
  kind: ['category', 'type'],
  state: ['status', 'clinical-status'],
}

/** How a search is made right whose parameters the server does not take. Undefined if they are not the reason. */
export function adviseOnParameters(
  type: string,
  { said, names }: { readonly said: string; readonly names: readonly string[] },
  offered: readonly OfferedParameter[],
): string | undefined {
  const find = (name: string) => offered.find(it => it.name === name)
  const plain = names.map(name => name.split(/[:.]/)[0] ?? '').filter(name => !name.startsWith('_'))
  const unknown = plain.find(name => !find(name))
  if (unknown === undefined) {
    const examples = [...new Set(plain)].flatMap(name => find(name)?.example ?? [])
    return examples.length === 0 ? undefined : `${said}. Write it as in ${examples.join(' or ')}.`
  }
  const guesses = Object.hasOwn(GUESSES, unknown) ? (GUESSES[unknown] ?? []) : []
  const listed = offered.map(it => it.name)
  const near = findNearest(unknown, listed) ?? ''
  const meant = [...guesses, near].flatMap(name => find(name) ?? [])[0]
  const has = `${type} has no parameter \`${shorten(unknown, 50)}\``
  return meant
    ? `${has}; use \`${meant.name}\`, as in ${meant.example}.`
    : `${has}. It has ${listed.join(', ')}.`
}
