import type { Resource } from '../../../fhir/index.ts'

function repeat<T>(count: number, create: (at: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, at) => create(at))
}

/** An element with some values; no element without any. */
function list(name: string, values: readonly object[]): object {
  return values.length === 0 ? {} : { [name]: values }
}

/**
 * A patient whose names, addresses and numbers repeat, and an Observation with several components (`o` and the id of the
 * patient): a database has several rows for them where it searches or sorts by these.
 */
export function createRepeating(id: string, at: number): readonly Resource[] {
  const patient = {
    resourceType: 'Patient',
    id,
    active: at % 2 === 0,
    gender: at % 3 === 0 ? 'male' : 'female',
    birthDate: `19${50 + (at % 20)}-01-01`,
    ...list(
      'name',
      repeat(1 + (at % 3), of => ({
        family: `F${(at + of) % 9}`,
        given: repeat(1 + (of % 3), it => `G${it}`),
      })),
    ),
    ...list(
      'address',
      repeat(at % 4, of => ({ city: `C${of}`, country: `L${at % 3}`, line: [`S${of}`, `T${at}`] })),
    ),
    ...list(
      'telecom',
      repeat(at % 3, of => ({ system: of % 2 ? 'email' : 'phone', value: `${of}${at % 5}` })),
    ),
    ...list(
      'identifier',
      repeat(1 + (at % 2), of => ({ system: `urn:${of}`, value: String(at) })),
    ),
  }
  const observation = {
    resourceType: 'Observation',
    id: `o${id}`,
    status: 'final',
    code: { coding: [{ system: 'http://loinc.org', code: '85354-9' }] },
    subject: { reference: `Patient/${id}` },
    component: repeat(1 + (at % 4), of => ({
      code: { coding: [{ system: 'http://loinc.org', code: of % 2 ? '8480-6' : '8462-4' }] },
      valueQuantity: { value: 60 + of, system: 'http://unitsofmeasure.org', code: 'mm[Hg]' },
    })),
  }
  return [patient, observation]
}
