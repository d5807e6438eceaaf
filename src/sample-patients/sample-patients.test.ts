import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openRepository } from '../backends/sqlite/index.ts'
import { type Resource, validate } from '../fhir/index.ts'
import { samplePatients } from './index.ts'
import { referencesOf, sampleOf } from './testing/sample.ts'

const now = Date.parse('2026-11-18T13:52:00Z')
const recorded = [...samplePatients({ now })]
const withCopies = [...samplePatients({ now, count: 200 })]
/** More than there are single family names. */
const ROUNDS = 62
const nameOf = (it: Resource) => `${it.resourceType}/${it.id}`

describe('samplePatients', () => {
  it('gives the same resources for the same hour (FHIR-12)', () => {
    assert.deepEqual([...samplePatients({ now: now + 7 * 60_000, count: 200 })], withCopies)
  })

  it('gives as many patients as asked for, the recorded ones first', () => {
    for (const count of [0, 1, 7, 59, 60, 61, 121, 300])
      assert.equal(sampleOf({ now, count }).all('Patient').length, count)
    assert.deepEqual(withCopies.slice(0, recorded.length), recorded)
  })

  it('is valid R4 (FHIR-12)', () => {
    for (const resource of withCopies) assert.deepEqual(validate(resource), [], nameOf(resource))
  })

  it('refers only to what is there, and patients come before what is about them', () => {
    const seen = new Set<string>()
    const later = new Set<string>()
    for (const resource of withCopies) {
      seen.add(nameOf(resource))
      for (const reference of referencesOf(resource)) {
        if (reference.startsWith('Patient/')) assert.ok(seen.has(reference), reference)
        else later.add(reference)
      }
    }
    assert.deepEqual(
      [...later].filter(it => !seen.has(it)),
      [],
    )
  })

  it('has an id for one resource only', () => {
    const names = withCopies.map(nameOf)
    assert.equal(new Set(names).size, names.length)
  })

  it('is taken by the repository as it is, and again without a change', () => {
    const repository = openRepository({ file: ':memory:', baseUrl: 'http://localhost:8080/fhir' })
    const { created, refused } = repository.load(recorded)
    assert.deepEqual({ created, refused }, { created: recorded.length, refused: [] })
    assert.equal(repository.load(samplePatients({ now })).unchanged, recorded.length)
    repository.close()
  })

  it('holds the test clinician as the first practitioner (LOGIN-3)', () => {
    const [first] = sampleOf({ now }).all('Practitioner')
    assert.equal(first?.id, 'practitioner-1')
    assert.deepEqual(first?.name?.[0], {
      use: 'official',
      family: 'Ahmadi',
      given: ['Robin'],
      prefix: ['Dr.'],
    })
  })

  it('uses telephone numbers and addresses that belong to nobody', () => {
    const all = JSON.stringify(withCopies)
    const phones = all.match(/"\+1-[\d-]+"/g) ?? []
    assert.ok(phones.length > 200)
    assert.deepEqual(
      phones.filter(phone => !/^"\+1-\d{3}-555-01\d\d"$/.test(phone)),
      [],
    )
    const mails = all.match(/"[^"]+@[^"]+"/g) ?? []
    assert.deepEqual(
      mails.filter(mail => !mail.endsWith('@example.org"')),
      [],
    )
  })
})

describe('a copy', () => {
  const sample = sampleOf({ now, count: 200 })
  const patients = sampleOf({ now, count: ROUNDS * 60 }).all('Patient')

  it('has the history of its original', () => {
    const types = ['Condition', 'Encounter', 'Observation', 'MedicationRequest', 'CareTeam'] as const
    const ids = new Set(['id', 'identifier', 'reference'])
    const omitIds = (key: string, value: unknown) => (ids.has(key) ? undefined : value)
    const history = (number: number) =>
      types
        .flatMap(type => sample.of(`patient-${number}`, type))
        .map(it => JSON.parse(JSON.stringify(it, omitIds)))
    for (const number of [61, 70, 121, 147, 180]) {
      assert.ok(history(number).length > 0)
      assert.deepEqual(history(number), history(((number - 1) % 60) + 1))
    }
  })

  it('has the sex, the birth date and the title of its original, and another name', () => {
    for (const [index, copy] of patients.entries()) {
      const original = patients[index % 60]
      if (original === undefined || copy === original) continue
      assert.equal(copy.gender, original.gender)
      assert.equal(copy.birthDate, original.birthDate)
      assert.deepEqual(copy.name?.[0]?.prefix, original.name?.[0]?.prefix)
      assert.notEqual(copy.name?.[0]?.family, original.name?.[0]?.family, copy.id)
    }
  })

  it('has a name that few others have, and a number of its own', () => {
    const names = patients.map(it => `${it.name?.[0]?.given} ${it.name?.[0]?.family}`)
    const most = Math.max(...[...Map.groupBy(names, it => it).values()].map(it => it.length))
    assert.ok(most <= 5, String(most))
    const numbers = patients.map(it => it.identifier?.[0]?.value).filter(it => it !== undefined)
    assert.deepEqual([numbers.length, new Set(numbers).size], [ROUNDS * 59, ROUNDS * 59])
  })

  it('of a twin has the family name of the other twin', () => {
    for (const round of [1, 50, ROUNDS - 1]) {
      const [one, two] = [29, 30].map(number => patients[number - 1 + round * 60])
      assert.equal(one?.name?.[0]?.family, two?.name?.[0]?.family)
      assert.deepEqual([one?.name?.[0]?.given, two?.name?.[0]?.given], [['Twin One'], ['Twin Two']])
    }
  })

  it('of a child has a mother with the family name of the child', () => {
    const [mother] = sample.of('patient-87', 'RelatedPerson')
    assert.equal(mother?.id, 'mother-87')
    assert.equal(mother?.name?.[0]?.family, patients[86]?.name?.[0]?.family)
  })
})
