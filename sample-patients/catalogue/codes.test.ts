import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Resource } from '../../src/fhir/index.ts'
import { systems } from '../coding.ts'
import { samplePatients } from '../index.ts'
import { allergens, noKnownAllergy, reactions } from './allergens.ts'
import { conditions, getConditionEntry, isConditionKey } from './conditions.ts'
import { routes } from './dosage.ts'
import { medicines } from './medicines.ts'
import { labs, panels } from './panels.ts'
import { procedures } from './procedures.ts'
import { encounterTypes } from './services.ts'
import { staff } from './staff.ts'
import { vaccines } from './vaccines.ts'
import { bloodPressure, smoking, surveys, vitals } from './vitals.ts'

const conditionCodes = Object.keys(conditions)
  .filter(isConditionKey)
  .map(key => getConditionEntry(key).snomed)

const snomedCodes = [
  ...conditionCodes,
  ...Object.values(allergens)
    .filter(it => it.system === 'snomed')
    .map(it => it.code),
  ...[...Object.values(procedures), ...Object.values(encounterTypes), ...Object.values(reactions)].map(
    ([code]) => code,
  ),
  ...Object.values(routes).map(([code]) => code),
  ...Object.values(staff).map(it => it.role[0]),
  ...Object.values(smoking.statuses).map(([code]) => code),
  noKnownAllergy[0],
]

const loincCodes = [
  ...Object.values(labs).map(it => it.loinc),
  ...Object.values(panels).map(it => it.loinc),
  ...Object.values(vitals).map(it => it.loinc),
  ...Object.values(surveys).map(it => it.loinc),
  ...Object.values(bloodPressure).map(([code]) => code),
  smoking.loinc,
]

describe('the catalogue', () => {
  it('has SNOMED CT codes whose check digit is right', () => {
    assert.ok(snomedCodes.length > 90)
    assert.deepEqual(
      snomedCodes.filter(code => !isVerhoeff(code)),
      [],
    )
  })

  it('has SNOMED CT codes of concepts, not of descriptions', () => {
    assert.deepEqual(
      snomedCodes.filter(code => !/^\d{4,16}[01]0\d$/.test(code)),
      [],
    )
  })

  it('has LOINC codes whose check digit is right', () => {
    assert.ok(loincCodes.length > 35)
    assert.deepEqual(
      loincCodes.filter(code => !isLoinc(code)),
      [],
    )
  })

  it('has a code for one thing only', () => {
    for (const codes of [conditionCodes, Object.values(medicines).map(it => it.rxnorm), loincCodes]) {
      assert.deepEqual(codes, [...new Set(codes)])
    }
  })

  it('names medicines by name, strength and form, in words that cannot be misread', () => {
    for (const { text } of Object.values(medicines)) {
      assert.match(text, /^[A-Z][a-z]+.* \d/, text)
      assert.doesNotMatch(text, /\bmcg\b|µg|\bIU\b|\bU\b|\d\.0\b/, text)
    }
  })

  it('gives vaccines CVX codes with at least two digits', () => {
    for (const { cvx } of Object.values(vaccines)) assert.match(cvx, /^\d{2,3}$/)
  })

  it('calls a code the same in every record', () => {
    const displays = new Map<string, Set<string>>()
    for (const { system, code, display } of codingsOf([...samplePatients({ now: Date.UTC(2026, 10, 13) })])) {
      if (display === undefined) continue
      const name = `${system}|${code}`
      displays.set(name, (displays.get(name) ?? new Set()).add(display))
    }
    assert.ok(displays.size > 150)
    assert.deepEqual(
      [...displays].filter(([, names]) => names.size > 1),
      [],
    )
  })

  it('uses no system that it does not know', () => {
    const known = new Set<string>(Object.values(systems))
    const foreign = [...codingsOf([...samplePatients({ now: Date.UTC(2026, 10, 13) })])]
      .map(it => it.system ?? '')
      .filter(system => !known.has(system) && !/^http:\/\/(terminology\.)?hl7\.org\//.test(system))
    assert.deepEqual(foreign, [])
  })
})

interface Coding {
  readonly system?: string
  readonly code?: string
  readonly display?: string
}

function* codingsOf(value: readonly Resource[] | unknown): Generator<Coding> {
  if (typeof value !== 'object' || value === null) return
  for (const [key, below] of Object.entries(value)) {
    if (key === 'coding' && Array.isArray(below)) yield* below as Coding[]
    else yield* codingsOf(below)
  }
}

// Verhoeff's check: multiplication in the dihedral group of ten, and a permutation by place.
const multiply = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
  [1, 2, 3, 4, 0, 6, 7, 8, 9, 5],
  [2, 3, 4, 0, 1, 7, 8, 9, 5, 6],
  [3, 4, 0, 1, 2, 8, 9, 5, 6, 7],
  [4, 0, 1, 2, 3, 9, 5, 6, 7, 8],
  [5, 9, 8, 7, 6, 0, 4, 3, 2, 1],
  [6, 5, 9, 8, 7, 1, 0, 4, 3, 2],
  [7, 6, 5, 9, 8, 2, 1, 0, 4, 3],
  [8, 7, 6, 5, 9, 3, 2, 1, 0, 4],
  [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
]
const permute = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
  [1, 5, 7, 6, 2, 8, 3, 0, 9, 4],
  [5, 8, 0, 3, 7, 9, 6, 1, 4, 2],
  [8, 9, 1, 6, 0, 4, 3, 5, 2, 7],
  [9, 4, 5, 3, 1, 2, 6, 8, 7, 0],
  [4, 2, 8, 6, 5, 7, 3, 9, 0, 1],
  [2, 7, 9, 3, 8, 0, 6, 4, 1, 5],
  [7, 0, 4, 6, 9, 1, 3, 2, 5, 8],
]

function isVerhoeff(code: string): boolean {
  const digits = [...code].reverse().map(Number)
  return digits.reduce((check, digit, at) => multiply[check]?.[permute[at % 8]?.[digit] ?? 0] ?? 0, 0) === 0
}

/** Modulo 10, doubling every other digit from the right (LOINC Users' Guide, appendix C). */
function isLoinc(code: string): boolean {
  const [number = '', check] = code.split('-')
  const sum = [...number]
    .reverse()
    .map((digit, at) => (at % 2 === 0 ? Number(digit) * 2 : Number(digit)))
    .reduce((total, value) => total + (value > 9 ? value - 9 : value), 0)
  return (10 - (sum % 10)) % 10 === Number(check)
}
