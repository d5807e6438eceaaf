import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openRepository } from '../src/backends/sqlite/index.ts'
import { validate } from '../src/fhir/index.ts'
import { samplePatients } from './index.ts'
import { referencesOf, sampleOf } from './testing/sample.ts'

const now = Date.parse('2026-11-13T13:52:00Z')
const sample = sampleOf({ now })
const text = (options: Parameters<typeof samplePatients>[0]) =>
  [...samplePatients(options)].map(it => JSON.stringify(it))

describe('samplePatients', () => {
  it('gives the same resources for the same seed, day and hour (FHIR-12)', () => {
    assert.deepEqual(text({ now, count: 40 }), text({ now: now + 7 * 60_000, count: 40 }))
  })

  it('gives other histories and other drawn people for another seed, and the same cast', () => {
    const other = sampleOf({ now, seed: 'another' })
    const names = (of: typeof sample) =>
      of.all('Patient').map(it => `${it.name?.[0]?.family} ${it.name?.[0]?.given}`)
    assert.deepEqual(names(other).slice(0, 30), names(sample).slice(0, 30))
    assert.notDeepEqual(names(other).slice(30), names(sample).slice(30))
    assert.notDeepEqual(other.of('patient-14', 'Condition'), sample.of('patient-14', 'Condition'))
  })

  it('moves only what is going on when the hour moves', () => {
    const later = new Set(text({ now: now + 3 * 3_600_000 }))
    const moved = [...samplePatients({ now })].filter(it => !later.has(JSON.stringify(it)))
    const open = new Set(
      sample
        .all('Encounter')
        .filter(it => it.status === 'in-progress')
        .map(it => `Encounter/${it.id}`),
    )
    assert.ok(moved.length > 10 && moved.length < 200, String(moved.length))
    for (const resource of moved) {
      const own = `${resource.resourceType}/${resource.id}`
      assert.ok(open.has(own) || [...referencesOf(resource)].some(it => open.has(it)), own)
    }
  })

  it('gives a patient the same record however many there are', () => {
    const few = sampleOf({ now, count: 33 })
    assert.deepEqual(few.of('patient-33', 'Observation'), sample.of('patient-33', 'Observation'))
    assert.deepEqual(few.of('patient-33', 'Condition'), sample.of('patient-33', 'Condition'))
  })

  it('gives as many patients as asked for, without end', () => {
    assert.equal(sampleOf({ now, count: 0 }).all('Patient').length, 0)
    assert.equal(sampleOf({ now, count: 7 }).all('Patient').length, 7)
    const many = sampleOf({ now, count: 300 }).all('Patient')
    assert.equal(many.length, 300)
    assert.equal(new Set(many.map(it => it.identifier?.[0]?.value).filter(Boolean)).size, 299)
  })

  it('is valid R4 (FHIR-12)', () => {
    for (const seed of ['sallyport', 'another', 'a third']) {
      for (const resource of samplePatients({ now, seed, count: 80 }))
        assert.deepEqual(validate(resource), [], String(resource.id))
    }
  })

  it('refers only to what is there, and patients come before what is about them', () => {
    const seen = new Set<string>()
    const later = new Set<string>()
    for (const resource of samplePatients({ now })) {
      seen.add(`${resource.resourceType}/${resource.id}`)
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
    const names = [...samplePatients({ now, count: 200 })].map(it => `${it.resourceType}/${it.id}`)
    assert.equal(new Set(names).size, names.length)
  })

  it('is 40 to 80 resources a patient', () => {
    const each = [...samplePatients({ now })].length / 60
    assert.ok(each > 40 && each < 80, String(each))
  })

  it('is taken by the repository as it is, and again without a change', () => {
    const repository = openRepository({ file: ':memory:', baseUrl: 'http://localhost:8080/fhir' })
    const resources = [...samplePatients({ now, count: 20 })]
    const { created, refused } = repository.load(resources)
    assert.deepEqual({ created, refused }, { created: resources.length, refused: [] })
    assert.equal(repository.load(samplePatients({ now, count: 20 })).unchanged, resources.length)
    repository.close()
  })

  it('holds the test clinician as the first practitioner (LOGIN-3)', () => {
    const [first] = sample.all('Practitioner')
    assert.equal(first?.id, 'practitioner-1')
    assert.deepEqual(first?.name?.[0], {
      use: 'official',
      family: 'Ahmadi',
      given: ['Robin'],
      prefix: ['Dr.'],
    })
  })

  it('uses telephone numbers and addresses that belong to nobody', () => {
    const all = [...samplePatients({ now, count: 200 })].map(it => JSON.stringify(it)).join('\n')
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
