import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { isRecord } from '../core/index.ts'
import { listProfiles, type Resource, resourceTypes } from '../fhir/index.ts'
import { referencesOf, sampleOf } from './testing/sample.ts'

const PROFILE = 'http://hl7.org/fhir/us/core/StructureDefinition/'
const PATIENTS = ['patient-59', 'patient-60']

/**
 * The must-support elements of each profile. Elements of a list are selected by a coding (`category[system|code]`, several after
 * commas), or by a member (`component[code=system|code]`, `extension[url=…]`). `name.use=old` is a value; `subject->us-core-patient`
 * is a reference to a resource of that profile; `value[x]` is any type. Servers add `meta.lastUpdated`.
 */
const MUST_SUPPORT: Readonly<Record<string, readonly string[]>> = JSON.parse(
  readFileSync(new URL('./testing/us-core-7.json', import.meta.url), 'utf8'),
)

const sample = sampleOf({ now: Date.parse('2026-11-18T13:52:00Z') })
const byName = new Map(sample.everything.map(it => [`${it.resourceType}/${it.id}`, it]))
const isOfOthers = (it: Resource) =>
  [...referencesOf(it), `${it.resourceType}/${it.id}`].some(
    name => name.startsWith('Patient/') && !PATIENTS.includes(name.slice('Patient/'.length)),
  )
/** The two patients with the hospital, and without the other patients. */
const certified = sample.everything.filter(it => !isOfOthers(it))

describe('the two patients for certification', () => {
  for (const [profile, elements] of Object.entries(MUST_SUPPORT))
    it(`have every must-support element of ${profile} (FHIR-12)`, () => {
      const claiming = certified.filter(it => claims(it, profile))
      assert.ok(claiming.length > 0)
      const missing = elements.filter(element => !claiming.some(it => hasElement(it, element)))
      assert.deepEqual(missing, [])
    })

  it('have a table of all profiles of US Core 7.0.0', () => {
    const known = new Set(resourceTypes.flatMap(listProfiles))
    assert.equal(Object.keys(MUST_SUPPORT).length, 52)
    for (const profile of Object.keys(MUST_SUPPORT)) assert.ok(known.has(PROFILE + profile), profile)
  })

  it('claim the profiles of their types only', () => {
    for (const it of certified)
      for (const profile of listClaims(it))
        assert.ok(listProfiles(it.resourceType).includes(profile), `${it.resourceType}/${it.id} ${profile}`)
  })

  it('have a Provenance of each of their resources', () => {
    for (const id of PATIENTS) {
      const [provenance] = certified.filter(
        it => it.resourceType === 'Provenance' && [...referencesOf(it)].includes(`Patient/${id}`),
      )
      const about = certified.filter(
        it => it !== provenance && !isShared(it) && [...referencesOf(it)].includes(`Patient/${id}`),
      )
      assert.ok(about.length > 50)
      const targets = new Set(referencesOf(provenance))
      for (const it of about)
        assert.ok(targets.has(`${it.resourceType}/${it.id}`), `${it.resourceType}/${it.id}`)
    }
  })

  it('have notes of the eight types, and reports of the three categories with the same attachments', () => {
    const codes = (type: string, key: string) =>
      certified.filter(it => it.resourceType === type).flatMap(it => [...listCodes(readKey(it, key))])
    const notes = new Set(codes('DocumentReference', 'type'))
    const types = '11488-4 18842-5 34117-2 28570-0 11506-3 18748-4 11502-2 11526-1'.split(' ')
    assert.deepEqual(
      types.filter(it => !notes.has(`http://loinc.org|${it}`)),
      [],
    )
    const reports = new Set(codes('DiagnosticReport', 'category'))
    for (const it of ['LP29708-2', 'LP7839-6', 'LP29684-5'])
      assert.ok(reports.has(`http://loinc.org|${it}`), it)
    const urls = (type: string) =>
      certified
        .filter(it => it.resourceType === type)
        .flatMap(it => JSON.stringify(it).match(/Binary\/[\w-]+/g) ?? [])
    for (const url of urls('DiagnosticReport')) {
      assert.ok(urls('DocumentReference').includes(url), url)
      assert.ok(byName.has(url), url)
    }
  })

  it('have absent data in both spellings', () => {
    const all = JSON.stringify(certified)
    assert.match(all, /"url":"http:\/\/hl7.org\/fhir\/StructureDefinition\/data-absent-reason"/)
    assert.match(
      all,
      /"system":"http:\/\/terminology.hl7.org\/CodeSystem\/data-absent-reason","code":"unknown"/,
    )
  })

  it('are the members of a Group, which copies of them do not have', () => {
    const groupsOf = (count: number) =>
      sampleOf({ now: 0, count }).everything.filter(it => it.resourceType === 'Group')
    const [group, ...others] = groupsOf(120)
    assert.deepEqual(others, [])
    assert.deepEqual([...referencesOf(group)], ['Patient/patient-59', 'Patient/patient-60'])
    assert.deepEqual(groupsOf(59), [])
  })
})

function isShared({ resourceType }: Resource): boolean {
  return resourceType === 'Group' || resourceType === 'Provenance'
}

function listClaims({ meta }: Resource): readonly string[] {
  return isRecord(meta) ? listItems(meta.profile).filter(it => typeof it === 'string') : []
}

function claims(resource: Resource, profile: string): boolean {
  return listClaims(resource).includes(PROFILE + profile)
}

function hasElement(resource: Resource, element: string): boolean {
  const [, path = '', target, value] = /^((?:[^[\]=]|\[[^\]]*\])*?)(?:->([\w-]+)|=(.+))?$/.exec(element) ?? []
  const found = follow([resource], path)
  if (target !== undefined)
    return found.some(it => [...referencesOf(it)].some(name => claims(byName.get(name) ?? resource, target)))
  return value === undefined ? found.length > 0 : found.includes(value)
}

/** Steps are divided by dots that are not in brackets. */
function follow(from: readonly unknown[], path: string): readonly unknown[] {
  return path.split(/\.(?![^[]*\])/).reduce<readonly unknown[]>((values, step) => {
    const [, name = '', filter] = /^(\w+(?:\[x\])?)(?:\[(.*)\])?$/.exec(step) ?? []
    return values
      .flatMap(it => listItems(readKey(it, name)))
      .filter(it => filter === undefined || isSelected(it, filter))
  }, from)
}

function isSelected(value: unknown, filter: string): boolean {
  const [, member, wanted = ''] = /^(?:(\w+)=)?(.*)$/.exec(filter) ?? []
  const selected = member === undefined ? value : readKey(value, member)
  if (typeof selected === 'string') return selected === wanted
  const codes = new Set(listCodes(selected))
  return wanted.split(',').some(it => codes.has(it))
}

/** `system|code` of a Coding, or of the codings of concepts. */
function* listCodes(value: unknown): Generator<string> {
  for (const it of listItems(value)) {
    if (!isRecord(it)) continue
    if (Array.isArray(it.coding)) yield* listCodes(it.coding)
    else yield `${it.system}|${it.code}`
  }
}

function readKey(value: unknown, name: string): unknown {
  if (!isRecord(value)) return undefined
  if (!name.endsWith('[x]')) return value[name]
  const choice = new RegExp(`^${name.slice(0, -3)}[A-Z]`)
  return Object.entries(value).find(([key]) => choice.test(key))?.[1]
}

function listItems(value: unknown): readonly unknown[] {
  return value === undefined ? [] : [value].flat()
}
