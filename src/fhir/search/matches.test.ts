import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { measureGrowth } from '../../../test/support/growth.ts'
import { fullResource } from '../../../test/support/r4-resources.ts'
import { resourceTypes } from '../definitions.ts'
import type { Resource } from '../resource.ts'
import type { IndexEntry } from './clause.ts'
import { createMatchTest } from './could-match.ts'
import { indexResource } from './index-entries.ts'
import { createMatcher, matches } from './matches.ts'
import { parseUncounted } from './parse-search.ts'
import { escapeSearchValue as escaped } from './values.ts'

const base = 'http://localhost:8080/fhir'

const patient: Resource = {
  resourceType: 'Patient',
  id: 'p1',
  meta: { lastUpdated: '2024-05-06T07:08:09.010Z', tag: [{ system: 'urn:tags', code: 'test' }] },
  active: true,
  name: [{ family: 'Núñez', given: ['Ana', 'María'] }],
  gender: 'female',
  birthDate: '1970-05-04',
  identifier: [{ system: 'urn:mrn', value: 'A,7' }, { value: 'bare' }, { system: 'urn:only' }],
  generalPractitioner: [{ reference: 'Practitioner/d1' }, { identifier: { system: 'urn:npi', value: '9' } }],
}

const observation: Resource = {
  resourceType: 'Observation',
  status: 'final',
  category: [
    {
      coding: [{ system: 'http://terminology.hl7.org/CodeSystem/observation-category', code: 'laboratory' }],
    },
  ],
  code: {
    coding: [{ system: 'http://loinc.org', code: '4548-4', display: 'Hemoglobin A1c' }],
    text: 'HbA1c',
  },
  subject: { reference: 'Patient/p1' },
  effectivePeriod: { start: '2020-03', end: '2020-05' },
  valueQuantity: { value: 6.3, unit: 'percent', system: 'http://unitsofmeasure.org', code: '%' },
}

const valueSet: Resource = { resourceType: 'ValueSet', url: 'http://x.example/fhir/ValueSet/a' }

/** Each row: parameter, value, and whether the search finds the resource. */
function table(resource: Resource, rows: readonly (readonly [string, string, boolean])[]): void {
  for (const [name, value, expected] of rows) {
    it(`${expected ? 'finds' : 'does not find'} ${resource.resourceType}?${name}=${value}`, () => {
      assert.equal(matches(resource, name, value, base), expected)
      assert.equal(createMatcher(resource, base)([name, value]), expected)
    })
  }
}

describe('matches by token', () => {
  table(patient, [
    ['_id', 'p1', true],
    ['_id', 'P1', false],
    ['_id', 'x,p1', true],
    ['active', 'true', true],
    ['active', 'false', false],
    ['gender', 'female', true],
    ['gender', 'Female', false],
    ['gender', 'http://hl7.org/fhir/administrative-gender|female', true],
    ['gender', 'urn:other|female', false],
    ['gender:not', 'female', false],
    ['gender:not', 'male', true],
    ['gender:not', 'male,female', false],
    ['language:not', 'de', true],
    ['deceased', 'false', true],
    ['deceased', 'true', false],
    ['identifier', 'A\\,7', true],
    ['identifier', 'A,7', false],
    ['identifier', 'urn:mrn|A\\,7', true],
    ['identifier', 'urn:mrn|', true],
    ['identifier', 'urn:only|', true],
    ['identifier', 'urn:other|', false],
    ['identifier', '|bare', true],
    ['identifier', '|A\\,7', false],
    ['identifier:contains', 'zzz,BAR', true],
    ['identifier:contains', 'mrn', false],
    ['_tag', 'urn:tags|test', true],
    ['language:missing', 'true', true],
    ['language:missing', 'false', false],
    ['gender:missing', 'false', true],
  ])
  table(observation, [
    ['category', 'laboratory', true],
    ['category', 'http://terminology.hl7.org/CodeSystem/observation-category|laboratory', true],
    ['category', 'http://terminology.hl7.org/CodeSystem/observation-category|survey', false],
    ['category', 'survey,laboratory', true],
    ['category', 'lab', false],
    ['code:text', 'hemo', true],
    ['code:text', 'hba1c', true],
    ['code:text', 'globin', false],
    ['code:text', 'x,hemo', true],
    ['code', 'HbA1c', false],
  ])
})

describe('matches by string', () => {
  table(patient, [
    ['name', 'nunez', true],
    ['name', 'NÚÑ', true],
    ['name', 'ana maria nunez', true],
    ['name', 'Núñez\\, Ana', true],
    ['name', 'maria nunez', false],
    ['name', 'unez', false],
    ['name:contains', 'unez', true],
    ['name:exact', 'Núñez', true],
    ['name:exact', 'Nunez', false],
    ['given', 'mar', true],
    ['given', 'x,mar', true],
    ['family', 'ana', false],
  ])
})

describe('matches by reference', () => {
  table(patient, [
    ['general-practitioner', 'd1', true],
    ['general-practitioner', 'Practitioner/d1', true],
    ['general-practitioner', 'd2,d1', true],
    ['general-practitioner', `${base}/Practitioner/d1`, true],
    ['general-practitioner', 'Organization/d1', false],
    ['general-practitioner', 'http://other.example/Practitioner/d1', false],
    ['general-practitioner:Practitioner', 'd1', true],
    ['general-practitioner:Organization', 'd1', false],
    ['general-practitioner:identifier', 'urn:npi|9', true],
    ['general-practitioner:identifier', 'urn:npi|', true],
    ['general-practitioner:identifier', 'urn:npi|8', false],
    ['general-practitioner:identifier', '|9', false],
    ['general-practitioner:identifier', '9', true],
    ['general-practitioner:identifier', '8,9', true],
  ])
  table(observation, [
    ['patient', 'p1', true],
    ['patient', 'Patient/p1', true],
    ['subject', 'Patient/p2', false],
    ['performer:missing', 'true', true],
  ])
})

describe('matches by date', () => {
  table(patient, [
    ['birthdate', '1970', true],
    ['birthdate', '1970-05-04', true],
    ['birthdate', '1970-05-05', false],
    ['birthdate', '1969,1970', true],
    ['birthdate', 'ne1970', false],
    ['birthdate', 'ge1970-05-04', true],
    ['birthdate', 'gt1970-05-04', false],
    ['birthdate', 'lt1970-05-04', false],
    ['birthdate', 'lt1971', true],
    ['birthdate', 'ap1971', true],
    ['birthdate', 'ap1972', false],
    ['_lastUpdated', 'gt2024-05-06T07:08:09.009Z', true],
    ['_lastUpdated', 'gt2024-05-06T07:08:09.010Z', false],
    ['_lastUpdated', '2024-05-06T09:08:09.010+02:00', true],
    ['_lastUpdated', 'sa2024-05-06T07:08:09.010Z', false],
    ['_lastUpdated', 'eb2024-05-06T07:08:09.010Z', false],
  ])
  table(observation, [
    ['date', '2020', true],
    ['date', '2020-04', false],
    ['date', 'ne2020-04', true],
    ['date', 'gt2020-04', true],
    ['date', 'lt2020-04', true],
    ['date', 'sa2020-04', false],
    ['date', 'sa2020-02', true],
    ['date', 'eb2020-05', false],
    ['date', 'eb2020-06', true],
    ['date', 'ge2020-05', false],
    ['date', 'ge2020-03', true],
    ['date', 'le2020-05', true],
    ['date', 'le2020-03', false],
    ['date', 'ap2020-08', false],
    ['date', 'ap2020-06', true],
  ])
})

it('finds both ends of an approximate date, and nothing beyond', () => {
  const clause = parseUncounted('Patient', '_lastUpdated', 'ap2024-05-06', base)
  assert(clause.kind === 'date')
  const [{ low, high } = { low: 0, high: 0 }] = clause.values
  const finds = (time: number) => {
    const changed = { ...patient, meta: { lastUpdated: new Date(time).toISOString() } }
    return matches(changed, '_lastUpdated', 'ap2024-05-06', base)
  }
  assert.deepEqual([low - 1, low, high, high + 1].map(finds), [false, true, true, false])
})

describe('matches by quantity and number', () => {
  table(observation, [
    ['value-quantity', '6.3', true],
    ['value-quantity', '6', true],
    ['value-quantity', '6.30', true],
    ['value-quantity', '6.4', false],
    ['value-quantity', 'ne6.3', false],
    ['value-quantity', 'ne6', false],
    ['value-quantity', 'gt6.3', false],
    ['value-quantity', 'ge6.3', true],
    ['value-quantity', 'ap6', true],
    ['value-quantity', '6.3|http://unitsofmeasure.org|%', true],
    ['value-quantity', '6.3|http://unitsofmeasure.org|', true],
    ['value-quantity', '6.3|urn:other|%', false],
    ['value-quantity', '6.3||%', true],
    ['value-quantity', '6.3||percent', true],
    ['value-quantity', '6.3||mg', false],
    ['value-quantity', '5,6.3', true],
  ])
  table({ resourceType: 'RiskAssessment', prediction: [{ probabilityDecimal: 0.8 }] }, [
    ['probability', '0.8', true],
    ['probability', '0.7,0.8', true],
    ['probability', 'gt0.8', false],
  ])
})

describe('matches by uri', () => {
  table(valueSet, [
    ['url', 'http://x.example/fhir/ValueSet/a', true],
    ['url', 'http://x.example/fhir/ValueSet/A', false],
    ['url', 'http://x.example/fhir', false],
    ['url', 'http://x.example/fhir,http://x.example/fhir/ValueSet/a', true],
    ['url:below', 'http://x.example/fhir', true],
    ['url:below', 'http://x.example/fhir/', true],
    ['url:below', 'http://x.example/fhi', false],
    ['url:above', 'http://x.example/fhir/ValueSet/a/b', true],
    ['url:above', 'http://x.example/fhir/ValueSet/ab', false],
  ])
})

describe('matches', () => {
  const undecidable: readonly (readonly [string, string])[] = [
    ['nonsense', '1'],
    ['category:in', 'http://x.example/ValueSet/1'],
    ['category:below', 'x'],
    ['category', ''],
    ['date', 'yesterday'],
    ['subject.name', 'Ana'],
    ['subject:Patient.name', 'Ana'],
    ['_has:Provenance:target:agent', 'x'],
    ['_filter', 'x'],
    ['_text', 'x'],
    ['_count', '1'],
    ['code-value-quantity', 'x$1'],
  ]
  for (const [name, value] of undecidable) {
    it(`is undefined for ${name}=${value}`, () => {
      assert.equal(matches(observation, name, value, base), undefined)
      assert.equal(createMatcher(observation, base)([name, value]), undefined)
    })
  }

  it('is undefined for an unknown type', () => {
    assert.equal(matches({ resourceType: 'Nonsense', id: '1' }, '_id', '1', base), undefined)
  })

  it('finds every resource by every value that it is indexed by', () => {
    for (const type of resourceTypes) {
      const resource = fullResource(type, 1)
      for (const entry of indexResource(resource, base)) {
        const [modifier, value] = searchFor(entry)
        assert.equal(
          matches(resource, entry.parameter + modifier, value, base),
          true,
          `${type}?${entry.parameter}=${value}`,
        )
        assert.equal(matches(resource, `${entry.parameter}:missing`, 'true', base), false)
        assert(could(resource, entry.parameter + modifier, value), `${type}?${entry.parameter}=${value}`)
        assert(could(resource, `${entry.parameter}:missing`, 'false'))
      }
    }
  })
})

function could(resource: Resource, name: string, value: string): boolean {
  const clause = parseUncounted(resource.resourceType, name, value, base)
  assert(clause.kind !== 'error', `${name}=${value}`)
  return createMatchTest(resource.resourceType, clause, base)(resource)
}

describe('createMatchTest', () => {
  const more: Resource = {
    ...patient,
    name: [{ text: "Ana María O'Brien-Núñez", family: 'Núñez' }],
    telecom: [{ system: 'phone', value: '+1 (555) 010-999' }],
    managingOrganization: { reference: 'http://alias.test/fhir/Organization/o1' },
    link: [{ other: { reference: '#contained' }, type: 'seealso' }],
  }

  it('takes time that is linear in the number of combining marks (LIMIT-7)', () => {
    const clause = parseUncounted('Patient', 'family:exact', 'x', base)
    assert(clause.kind !== 'error')
    const check = (marks: number) => {
      const family = `a${'\u0301\u0323'.repeat(marks / 2)}`
      createMatchTest('Patient', clause, base)({ resourceType: 'Patient', name: [{ family }] })
    }
    const grown = measureGrowth(check, 2_000)
    assert.ok(grown < 8, `${grown} times as long`)
  })

  it('is true wherever servers may differ', () => {
    for (const [name, value] of [
      ['name', 'brien'],
      ['name', 'obrien'],
      ['name', 'ana nunez'],
      ['name:contains', 'mari'],
      ['name', '李'],
      ['phonetic', 'Nunyez'],
      ['gender', 'FEMALE'],
      ['gender', 'http://site.test/gender|female'],
      ['identifier', 'urn:mrn|a\\,7'],
      ['phone', '1555010999'],
      ['telecom', '+1-555-010-999'],
      ['birthdate', '1970-05-05'],
      ['birthdate', 'gt1970-05-04'],
      ['birthdate', 'ap1950'],
      ['organization', 'Organization/o1'],
      ['link', 'Patient/other'],
      ['general-practitioner', 'd1'],
      ['_tag:not', 'urn:tags|other'],
      ['identifier:not', 'bare'],
    ] as const)
      assert(could(more, name, value), `${name}=${value}`)
    for (const [name, value] of [
      ['value-quantity', '0.063|http://unitsofmeasure.org|1'],
      ['code:text', 'haemoglobin'],
      ['date', '2020-06-01'],
      ['patient.name', 'x'],
    ] as const)
      assert(could(observation, name, value), `${name}=${value}`)
    assert(could({ ...patient, meta: {} }, '_lastUpdated', 'ge2030'))
    const long = { ...observation, valueString: `${'a'.repeat(2_000)} end` }
    assert(could(long, 'value-string:contains', 'end'))
  })

  it('is false for resources that no server can match', () => {
    for (const [name, value] of [
      ['_id', 'p2'],
      ['name', 'smith'],
      ['name:exact', 'nunez'],
      ['gender', 'male'],
      ['active', 'false'],
      ['identifier', 'NEW'],
      ['identifier', 'urn:other|A\\,7'],
      ['identifier', 'urn:mrn|bare'],
      ['identifier:missing', 'true'],
      ['telecom:missing', 'false'],
      ['birthdate', '1980'],
      ['birthdate', 'gt1971'],
      ['birthdate', 'lt1969'],
      ['general-practitioner', 'Practitioner/d2'],
      ['general-practitioner', 'http://other.test/fhir/Practitioner/d1'],
      ['general-practitioner:identifier', 'urn:npi|8'],
      ['_lastUpdated', 'ge2025'],
      ['_tag', 'other'],
      ['organization', 'o1'],
    ] as const)
      assert(!could(patient, name, value), `${name}=${value}`)
    for (const [name, value] of [
      ['status:not', 'final'],
      ['code', 'http://loinc.org|1-1'],
      ['value-quantity', '7'],
      ['value-quantity', 'lt6|http://unitsofmeasure.org|%'],
      ['patient', 'p2'],
    ] as const)
      assert(!could(observation, name, value), `${name}=${value}`)
    const long = { ...observation, valueString: 'a'.repeat(2_000) }
    assert(!could(long, 'value-string:exact', `${'a'.repeat(1_999)}b`))
  })
})

/** Returns a search that the index entry matches. */
function searchFor(entry: IndexEntry): readonly [modifier: string, value: string] {
  switch (entry.kind) {
    case 'token':
      if (entry.code === undefined && entry.system === undefined) return [':text', escaped(entry.text ?? '')]
      return ['', `${escaped(entry.system ?? '')}|${escaped(entry.code ?? '')}`]
    case 'reference':
      if (entry.identifierValue !== undefined) return [':identifier', escaped(entry.identifierValue)]
      return ['', entry.url ?? `${entry.type}/${entry.id}`]
    case 'string':
      return [':exact', escaped(entry.exact)]
    case 'date':
      return ['', `ge${new Date(entry.low).toISOString()}`]
    case 'number':
    case 'quantity':
      return ['', `ge${entry.low}`]
    case 'uri':
      return ['', escaped(entry.uri)]
  }
}
