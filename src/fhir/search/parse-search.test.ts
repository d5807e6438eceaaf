import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { HIERARCHY_CHARACTERS, SEARCHED_CHARACTERS } from '../limits.ts'
import { getFhirWords } from '../reasons/reasons.ts'
import { Work } from '../work.ts'
import type { SearchError } from './bad-search.ts'
import { parseSearch, parseUncounted, SearchSteps } from './parse-search.ts'

const base = 'http://localhost:8080/fhir'
const parse = (type: string, name: string, value: string) => parseUncounted(type, name, value, base)

function reason(type: string, name: string, value: string): string {
  const clause = parse(type, name, value)
  return clause.kind === 'error' ? describeError(clause) : 'accepted'
}

/** An unknown parameter by its reason, other errors by their code. */
function describeError({ reason }: SearchError): string {
  return reason === 'parameter-unknown' ? reason : getFhirWords(reason).code
}

describe('parseSearch of a token', () => {
  const values = (value: string) => {
    const clause = parse('Observation', 'code', value)
    return clause.kind === 'token' ? clause.values : clause
  }

  it('distinguishes any system, a system, no system and any code', () => {
    assert.deepEqual(values('8480-6'), [{ system: undefined, code: '8480-6' }])
    assert.deepEqual(values('http://loinc.org|8480-6'), [{ system: 'http://loinc.org', code: '8480-6' }])
    assert.deepEqual(values('|8480-6'), [{ system: null, code: '8480-6' }])
    assert.deepEqual(values('http://loinc.org|'), [{ system: 'http://loinc.org', code: undefined }])
  })

  it('parses alternatives and escapes', () => {
    assert.deepEqual(values('a,b\\,c,s\\|x|d\\$e'), [
      { system: undefined, code: 'a' },
      { system: undefined, code: 'b,c' },
      { system: 's|x', code: 'd$e' },
    ])
  })

  it('reads :not, :text and :missing', () => {
    assert.deepEqual(parse('Observation', 'code:not', 'a'), {
      kind: 'token',
      parameter: 'code',
      negated: true,
      values: [{ system: undefined, code: 'a' }],
    })
    assert.deepEqual(parse('Observation', 'code:text', 'Blood PRESSURE'), {
      kind: 'text',
      parameter: 'code',
      values: ['blood pressure'],
    })
    assert.deepEqual(parse('Observation', 'code:missing', 'true'), {
      kind: 'missing',
      parameter: 'code',
      missing: true,
    })
  })

  it('refuses a value that would match anything', () => {
    for (const value of ['', '|', ',', 'a,', 'a|b|c'])
      assert.equal(reason('Observation', 'code', value), 'invalid')
    assert.equal(reason('Observation', 'code:missing', 'maybe'), 'invalid')
  })
})

describe('parseSearch of a string', () => {
  it('normalizes all but :exact', () => {
    assert.deepEqual(parse('Patient', 'name', 'Núñez,Li'), {
      kind: 'string',
      parameter: 'name',
      match: 'starts',
      values: ['nunez', 'li'],
    })
    assert.deepEqual(parse('Patient', 'name:contains', 'ÑEZ'), {
      kind: 'string',
      parameter: 'name',
      match: 'contains',
      values: ['nez'],
    })
    assert.deepEqual(parse('Patient', 'name:exact', 'Núñez\\, Ana'), {
      kind: 'string',
      parameter: 'name',
      match: 'exact',
      values: ['Núñez, Ana'],
    })
  })

  it('refuses a value that is empty after normalization', () => {
    for (const value of ['', ' ', '\\,', 'a, '])
      assert.equal(reason('Patient', 'name', value), 'invalid', value)
  })
})

describe('parseSearch of a reference', () => {
  const value = (name: string, text: string, type = 'Observation') => {
    const clause = parse(type, name, text)
    return clause.kind === 'reference' ? clause.values[0] : clause
  }

  it('parses references to resources of this server', () => {
    const expected = { kind: 'local', types: ['Patient'], id: '1' }
    assert.deepEqual(value('patient', '1'), expected)
    assert.deepEqual(value('patient', 'Patient/1'), expected)
    assert.deepEqual(value('patient', `${base}/Patient/1`), expected)
    assert.deepEqual(value('patient', 'Patient/1/_history/2'), expected)
    assert.deepEqual(value('subject:Patient', '1'), expected)
    assert.deepEqual(value('subject:Patient', 'Patient/1'), expected)
  })

  it('reads a bare id as a reference to any target type', () => {
    assert.deepEqual(value('subject', '1'), {
      kind: 'local',
      types: ['Group', 'Device', 'Patient', 'Location'],
      id: '1',
    })
    assert.deepEqual(value('target', '1', 'Provenance'), { kind: 'local', types: undefined, id: '1' })
  })

  it('keeps URLs of other servers', () => {
    for (const url of ['http://other.example/Patient/1', 'urn:uuid:1']) {
      assert.deepEqual(value('subject', url), { kind: 'url', url })
    }
  })

  it('reads :identifier', () => {
    assert.deepEqual(parse('Observation', 'subject:identifier', 'urn:mrn|7'), {
      kind: 'identifier',
      parameter: 'subject',
      values: [{ system: 'urn:mrn', code: '7' }],
    })
  })

  it('refuses a value that is not a reference', () => {
    for (const text of ['Nonsense/1', 'Patient/', '#p', 'a/b/c', 'Patient/1/Condition', ' 1']) {
      assert.equal(reason('Observation', 'subject', text), 'invalid', text)
    }
    assert.equal(reason('Observation', 'subject:Patient', 'Group/1'), 'invalid')
    assert.equal(reason('Observation', 'subject:Practitioner', '1'), 'not-supported')
    assert.equal(reason('Observation', 'subject:Nonsense', '1'), 'not-supported')
  })
})

describe('parseSearch of a date', () => {
  const value = (text: string) => {
    const clause = parse('Patient', 'birthdate', text)
    return clause.kind === 'date' ? clause.values[0] : clause
  }
  const [start, end] = [Date.UTC(2020, 0, 1), Date.UTC(2021, 0, 1) - 1]

  it('reads every prefix', () => {
    for (const prefix of ['eq', 'ne', 'gt', 'ge', 'lt', 'le', 'sa', 'eb']) {
      assert.deepEqual(value(`${prefix}2020`), { prefix, low: start, high: end })
    }
    assert.deepEqual(value('2020'), { prefix: 'eq', low: start, high: end })
  })

  it('widens an approximate date by its own length', () => {
    const width = end - start + 1
    assert.deepEqual(value('ap2020'), { prefix: 'ap', low: start - width, high: end + width })
  })

  it('accepts a time zone whose plus sign was decoded as a space', () => {
    assert.deepEqual(value('2020-01-01T01:00:00 01:00'), { prefix: 'eq', low: start, high: start + 999 })
  })

  it('refuses a value that is not a date', () => {
    for (const text of ['x', 'xx2020', '2020-02-30', 'ge', 'geq2020']) {
      assert.equal(reason('Patient', 'birthdate', text), 'invalid', text)
    }
    assert.equal(reason('Patient', 'birthdate:exact', '2020'), 'not-supported')
  })
})

describe('parseSearch of a number or quantity', () => {
  const number = (text: string) => {
    const clause = parse('ChargeItem', 'factor-override', text)
    return clause.kind === 'number' ? clause.values[0] : clause
  }

  it('uses the precision of the given digits', () => {
    const found = number('100')
    assert.ok(found !== undefined && 'low' in found)
    assert.equal(found.low, 99.5)
    assert.ok(found.high < 100.5 && found.high > 100.4999999)
    const precise = number('100.00')
    assert.ok(precise !== undefined && 'low' in precise)
    assert.equal(precise.low, 99.995)
    const rough = number('1e2')
    assert.ok(rough !== undefined && 'low' in rough)
    assert.equal(rough.low, 50)
  })

  it('compares exactly after a comparing prefix', () => {
    for (const prefix of ['gt', 'ge', 'lt', 'le', 'sa', 'eb']) {
      assert.deepEqual(number(`${prefix}-1.5`), { prefix, low: -1.5, high: -1.5 })
    }
    assert.deepEqual(number('ap-100'), { prefix: 'ap', low: -110, high: -90 })
  })

  it('includes every number in its own range', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e15, max: 1e15 }), value => {
        const found = number(String(value))
        assert.ok(found !== undefined && 'low' in found, String(value))
        assert.ok(found.low <= value && value <= found.high)
      }),
    )
  })

  it('refuses a value that is not a number', () => {
    for (const text of ['x', '1,', '1.', '.5', '1e', 'Infinity', 'NaN', '0x10', '1e999', '']) {
      assert.equal(reason('ChargeItem', 'factor-override', text), 'invalid', text)
    }
  })

  it('parses the unit of a quantity with and without a system', () => {
    const unit = (text: string) => {
      const clause = parse('Observation', 'value-quantity', text)
      return clause.kind === 'quantity' ? [clause.values[0]?.system, clause.values[0]?.code] : clause
    }
    assert.deepEqual(unit('gt5.4|http://unitsofmeasure.org|mg'), ['http://unitsofmeasure.org', 'mg'])
    assert.deepEqual(unit('5.4||mg'), [undefined, 'mg'])
    assert.deepEqual(unit('5.4'), [undefined, undefined])
    for (const text of ['5.4|mg', 'mg', '5||mg|x']) {
      assert.equal(reason('Observation', 'value-quantity', text), 'invalid', text)
    }
  })
})

describe('parseSearch of a uri', () => {
  it('reads :below and :above', () => {
    for (const [name, match] of [
      ['url', 'exact'],
      ['url:below', 'below'],
      ['url:above', 'above'],
    ] as const) {
      assert.deepEqual(parse('ValueSet', name, 'http://x.example/a'), {
        kind: 'uri',
        parameter: 'url',
        match,
        values: ['http://x.example/a'],
      })
    }
  })
})

describe('parseSearch', () => {
  it('refuses an empty value of every type', () => {
    for (const [type, name] of [
      ['ValueSet', 'url'],
      ['Patient', 'name:exact'],
      ['Patient', 'identifier:contains'],
    ] as const)
      for (const value of ['', 'a,']) assert.equal(reason(type, name, value), 'invalid', name)
    assert.equal(reason('Patient', 'identifier:contains', ' '), 'invalid')
    assert.equal(reason('Patient', 'general-practitioner', 'a'.repeat(65)), 'invalid')
  })

  it('limits the characters of values that are searched by prefix, substring or hierarchy', () => {
    for (const [type, name, most] of [
      ['Observation', 'code:text', SEARCHED_CHARACTERS],
      ['Patient', 'name', SEARCHED_CHARACTERS],
      ['Patient', 'identifier:contains', SEARCHED_CHARACTERS],
      ['ValueSet', 'url:below', HIERARCHY_CHARACTERS],
    ] as const) {
      assert.equal(reason(type, name, `b,${'a'.repeat(most)}`), 'accepted', name)
      assert.equal(reason(type, name, `b,${'a'.repeat(most + 1)}`), 'too-costly', name)
    }
  })

  it('counts a step for each value and each type of a chain, before it parses them', () => {
    const read = (name: string, value: string, units: number) => {
      const clause = parseSearch('Observation', name, value, base, new SearchSteps(new Work(units)))
      return clause.kind === 'error' ? describeError(clause) : 'accepted'
    }
    const step = 4
    const least = (name: string, value: string, steps: number) => [
      read(name, value, steps * step),
      read(name, value, steps * step - 1),
    ]
    assert.deepEqual(least('code', 'a,b,c', 3), ['accepted', 'too-costly'])
    assert.deepEqual(least('none', 'a', 1), ['parameter-unknown', 'too-costly'])
    assert.deepEqual(least('performer:Patient.name', 'a,b', 4), ['accepted', 'too-costly'])
    assert.equal(read('performer.name', 'a', 3 * step), 'too-costly')
  })

  it('limits the steps of one search, so that it is parsed without a pause', () => {
    const steps = new SearchSteps(undefined)
    const parseAgain = () => parseSearch('Observation', 'code', `${'a,'.repeat(999)}b`, base, steps).kind
    assert.deepEqual([parseAgain(), parseAgain(), parseAgain()], ['token', 'token', 'error'])
  })
})
