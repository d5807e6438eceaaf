import { openRepository, type Repository } from '../../../src/backends/sqlite/index.ts'
import { BASE } from '../../../src/backends/sqlite/testing/fhir.ts'
import type { ExactResource, Resource } from '../../../src/fhir/index.ts'

/** Resources of one patient and of the patient's care team. */
const PER_PATIENT = 50
/** Patients of the small panels, whatever the size of the data set. */
const FEW = 10
const BATCH = 5_000
const DAY = 86_400_000

/** Fills a file with this number of resources, unless it has them. Writes them as the server does, but does not validate them. */
export function fill(file: string, size: number): void {
  const repository = openRepository({ file, baseUrl: BASE })
  if (repository.count() === 0) {
    repository.database.exec('PRAGMA synchronous = OFF')
    for (const batch of listBatches(listResources(size))) saveAll(repository, batch)
  }
  repository.close()
}

function saveAll(repository: Repository, batch: readonly Resource[]): void {
  repository.database.transaction(() => {
    for (const resource of batch)
      repository.save(resource as ExactResource, String(resource.id), undefined, 'PUT')
  })
}

function* listBatches(resources: Iterable<Resource>): Generator<readonly Resource[]> {
  let batch: Resource[] = []
  for (const resource of resources) {
    batch.push(resource)
    if (batch.length < BATCH) continue
    yield batch
    batch = []
  }
  yield batch
}

/**
 * `Organization/few` and the teams of `Practitioner/few` have 10 patients, `Organization/many` and the teams of
 * `Practitioner/many` half of all.
 */
function* listResources(size: number): Generator<Resource> {
  for (const id of ['few', 'many', 'others']) {
    yield { resourceType: 'Organization', id, name: id }
    yield { resourceType: 'Practitioner', id }
  }
  const patients = Math.floor(size / PER_PATIENT)
  const step = Math.max(2, Math.floor(patients / FEW))
  for (let at = 0; at < patients; at++) yield* listRecord(at, findPanel(at, step), findFamily(at, step))
}

function findPanel(at: number, step: number): string {
  return at % step === 0 ? 'few' : at % 2 === 0 ? 'many' : 'others'
}

const BEGINNINGS = ['Smith', 'Jones', 'Brown', 'Tail', 'Wil', 'Ev', 'Walk', 'Wright', 'Green', 'Hall']
const ENDS = ['', 'er', 'ers', 'sen', 'ton', 'ley', 'man', 'ford', 'well', 'wood']

/** `Smithson` has 20 patients whatever the size of the data set. `Smith` is the beginning of every tenth other name. */
function findFamily(at: number, step: number): string {
  return at % Math.floor(step / 2) === 0
    ? 'Smithson'
    : `${BEGINNINGS[at % 10]}${ENDS[Math.floor(at / 10) % 10]}`
}

function* listRecord(at: number, panel: string, family: string): Generator<Resource> {
  const id = `p${at}`
  const subject = { reference: `Patient/${id}` }
  yield {
    resourceType: 'Patient',
    id,
    name: [{ family, given: [`Given${at % 97}`] }],
    birthDate: formatDate(at * 7 - 20_000).slice(0, 10),
    gender: at % 2 === 0 ? 'female' : 'male',
    managingOrganization: { reference: `Organization/${panel}` },
  }
  yield {
    resourceType: 'CareTeam',
    id: `t${at}`,
    status: 'active',
    subject,
    participant: [{ member: { reference: `Practitioner/${panel}` } }],
  }
  for (let number = 0; number < 4; number++) yield makeEncounter(`${at}-${number}`, subject, at + number)
  for (let number = 0; number < 5; number++) yield makeCondition(`${at}-${number}`, subject, at * 3 + number)
  for (let number = 0; number < 39; number++)
    yield makeObservation(`${at}-${number}`, subject, at * 39 + number)
}

type Subject = { readonly reference: string }

function makeEncounter(id: string, subject: Subject, seed: number): Resource {
  return {
    resourceType: 'Encounter',
    id: `e${id}`,
    status: 'finished',
    class: { system: 'http://terminology.hl7.org/CodeSystem/v3-ActCode', code: 'AMB' },
    subject,
    period: { start: formatDate(seed % 3_000), end: formatDate((seed % 3_000) + 0.1) },
  }
}

function makeCondition(id: string, subject: Subject, seed: number): Resource {
  return {
    resourceType: 'Condition',
    id: `c${id}`,
    clinicalStatus: code(
      'http://terminology.hl7.org/CodeSystem/condition-clinical',
      seed % 3 === 0 ? 'resolved' : 'active',
    ),
    code: code('http://snomed.info/sct', `${38_341_003 + (seed % 40)}`),
    subject,
    recordedDate: formatDate(seed % 3_000),
  }
}

function makeObservation(id: string, subject: Subject, seed: number): Resource {
  return {
    resourceType: 'Observation',
    id: `o${id}`,
    status: 'final',
    category: [
      code(
        'http://terminology.hl7.org/CodeSystem/observation-category',
        seed % 2 === 0 ? 'vital-signs' : 'laboratory',
      ),
    ],
    code: code('http://loinc.org', `${8_480 + (seed % 20)}-6`),
    subject,
    effectiveDateTime: formatDate((seed * 0.37) % 3_000),
    valueQuantity: { value: 100 + (seed % 50), system: 'http://unitsofmeasure.org', code: 'mm[Hg]' },
  }
}

function code(system: string, value: string) {
  return { coding: [{ system, code: value }] }
}

function formatDate(day: number): string {
  return new Date(Date.UTC(2018, 0, 1) + Math.round(day * DAY)).toISOString()
}
