import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Params } from '../../../fhir/index.ts'
import { buildScopeClauses } from './scope-clauses.ts'

const baseUrl = 'http://fhir.test/fhir'

function parse(text: string): Params {
  return text === '' ? [] : text.split('&').map(it => it.split('=') as [string, string])
}

/** The parameters that are sent, those of the caller first, with a star where a clause is not expressed. */
function send(scope: string, own = '', type = 'Observation'): string {
  const ofCaller = parse(own)
  const { params, replaced, isComplete } = buildScopeClauses(type, parse(scope), ofCaller, baseUrl)
  const sent = [...ofCaller.filter(it => !replaced.has(it)), ...params].map(it => it.join('='))
  return `${sent.join('&')}${isComplete ? '' : ' *'}`
}

describe('a clause of a scope', () => {
  for (const [scope, expected] of [
    ['status=final', 'status=final'],
    ['category=a,b&status=final', 'category=a,b&status=final'],
    ['patient=Patient/a', 'patient=Patient/a'],
    // A year or a month is the range of its days, and a day more at both ends.
    ['date=ge2026', 'date=ge2025-12-31'],
    ['date=gt2026-03', 'date=ge2026-03-30'],
    ['date=sa2026-03-05', 'date=ge2026-03-04'],
    ['date=le2026', 'date=le2027-01-01'],
    ['date=lt2026-02', 'date=le2026-02-02'],
    ['date=eb2026-03-05T10:00:00Z', 'date=le2026-03-06'],
    ['date=2026', 'date=ge2025-12-31&date=le2027-01-01'],
    ['date=ap2026-03-05', 'date=ge2026-03-03&date=le2026-03-07'],
    // Lists and repetitions are one range.
    ['date=2024-05,2026-05', 'date=ge2024-04-30&date=le2026-06-01'],
    ['date=ge2024&date=ge2025&date=lt2026-01-01', 'date=ge2024-12-31&date=le2026-01-02'],
    ['date=ge2024,lt2020', ' *'],
    ['date=ne2024', ' *'],
    ['date=ge0001', ' *'],
    ['value-quantity=gt5||mg', 'value-quantity=ge5'],
    ['value-quantity=5', 'value-quantity=ge4.5&value-quantity=le5.499999999999999'],
    ['value-quantity=lt5|http://unitsofmeasure.org|mg', 'value-quantity=le5'],
    ['status:not=final', ' *'],
    ['status:not=final&category=a', 'category=a *'],
  ] as const)
    it(`is sent as ${expected} for ${scope}`, () => assert.equal(send(scope), expected))

  it('with more than 300 values is not sent', () => {
    assert.equal(send(`code=${Array(300).fill('x')}`), `code=${Array(300).fill('x')}`)
    assert.equal(send(`code=${Array(301).fill('x')}`), ' *')
  })
})

describe('a date of a scope and one of the caller', () => {
  for (const [scope, own, expected] of [
    // The narrower bound is sent.
    ['date=ge2026', 'date=ge2000', 'date=ge2025-12-31'],
    ['date=ge2026', 'date=gt2024', 'date=ge2025-12-31'],
    ['date=ge2026', 'date=ge2026-05', 'date=ge2026-05'],
    ['date=ge2026', 'date=ge2026', 'date=ge2026'],
    ['date=le2020', 'date=lt2030', 'date=le2021-01-01'],
    ['date=le2020', 'date=lt2010', 'date=lt2010'],
    // One lower and one upper bound are both sent.
    ['date=ge2026', 'date=lt2030', 'date=lt2030&date=ge2025-12-31'],
    ['date=2026', 'date=ge2000', 'date=ge2025-12-31&date=le2027-01-01'],
    ['date=2026', 'date=ge2026-05', 'date=ge2026-05&date=le2027-01-01'],
    ['date=2026', 'date=ge2000&date=le2030', 'date=ge2025-12-31&date=le2027-01-01'],
    // The caller's own cannot be replaced.
    ['date=ge2026', 'date=2020', 'date=2020'],
    ['date=ge2026', 'date=sa2020', 'date=sa2020'],
    ['date=2026', 'date=sa2020', 'date=sa2020&date=le2027-01-01'],
    ['date=ge2026', 'date=2020,2021', 'date=2020,2021'],
    ['date=ge2026', 'date:missing=false', 'date:missing=false'],
    ['date=ge2026', '_lastUpdated=ge2000', '_lastUpdated=ge2000&date=ge2025-12-31'],
  ] as const)
    it(`are sent as ${expected} for ${scope} and ${own}`, () => assert.equal(send(scope, own), expected))
})
