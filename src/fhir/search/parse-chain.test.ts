import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { listSearchParameters, resourceTypes } from '../definitions.ts'
import { describeFailed, getFhirWords } from '../reasons/reasons.ts'
import type { SearchError } from './bad-search.ts'
import { parseUncounted } from './parse-search.ts'

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

describe('parseSearch of modifiers and names', () => {
  it('never ignores a modifier', () => {
    const refused: readonly (readonly [string, string])[] = [
      ['Observation', 'code:in'],
      ['Observation', 'code:below'],
      ['Observation', 'code:above'],
      ['Observation', 'code:exact'],
      ['Observation', 'code:'],
      ['Observation', 'code:not:text'],
      ['Patient', 'identifier:of-type'],
      ['Patient', 'name:not'],
      ['Patient', 'name:text'],
      ['Observation', 'subject:above'],
      ['Observation', 'value-quantity:exact'],
      ['ValueSet', 'url:contains'],
    ]
    for (const [type, name] of refused) assert.equal(reason(type, name, '1'), 'not-supported', name)
  })

  it('reports an unknown parameter', () => {
    for (const name of [
      'nonsense',
      'nonsense:exact',
      'nonsense.name',
      '_text',
      '_content',
      '_filter',
      '_list',
      '',
    ]) {
      assert.equal(reason('Patient', name, '1'), 'parameter-unknown', name)
    }
    assert.equal(reason('Nonsense', '_id', '1'), 'parameter-unknown')
  })

  it('accepts :missing on every parameter of every type', () => {
    for (const type of resourceTypes) {
      for (const { code } of listSearchParameters(type)) {
        assert.deepEqual(parse(type, `${code}:missing`, 'false'), {
          kind: 'missing',
          parameter: code,
          missing: false,
        })
      }
    }
  })

  it('does not repeat the value in a message', () => {
    for (const [name, value] of [
      ['birthdate', 'secret'],
      ['general-practitioner', 'secret/secret'],
      ['name:secretly', 'secret'],
    ] as const) {
      const clause = parse('Patient', name, value)
      assert.ok(clause.kind === 'error')
      assert.equal(describeFailed(clause).replace(':secretly', '').includes('secret'), false)
    }
  })

  it('never throws', () => {
    const names = fc.oneof(
      fc.string(),
      fc.constantFrom(
        'name',
        'birthdate',
        'identifier',
        'general-practitioner',
        '_has:Observation:patient:code',
      ),
    )
    fc.assert(fc.property(names, fc.string(), (name, value) => assert.ok(parse('Patient', name, value).kind)))
  })
})

describe('parseSearch of a chain', () => {
  it('uses the named type', () => {
    assert.deepEqual(parse('Observation', 'subject:Patient.name:exact', 'Ana'), {
      kind: 'chain',
      parameter: 'subject',
      targets: [
        { type: 'Patient', clause: { kind: 'string', parameter: 'name', match: 'exact', values: ['Ana'] } },
      ],
    })
  })

  it('uses every target type that has the parameter if none is named', () => {
    const clause = parse('Observation', 'subject.identifier', '7')
    assert.ok(clause.kind === 'chain')
    assert.deepEqual(
      clause.targets.map(it => it.type),
      ['Group', 'Device', 'Patient', 'Location'],
    )
    const named = parse('Observation', 'subject.birthdate', '2020')
    assert.ok(named.kind === 'chain')
    assert.deepEqual(
      named.targets.map(it => it.type),
      ['Patient'],
    )
  })

  it('reads the values once for all target types with the same parameter, so that they take memory once', () => {
    const clause = parse('List', 'item._id', 'a,b')
    assert.ok(clause.kind === 'chain' && clause.targets.length > 100)
    assert.equal(new Set(clause.targets.map(it => it.clause)).size, 1)
    const references = parse('Provenance', 'target.subject', '7')
    assert.ok(references.kind === 'chain')
    const [observation, list] = ['Observation', 'Account'].map(
      type => references.targets.find(it => it.type === type)?.clause,
    )
    assert.notDeepEqual(observation, list)
  })

  it('follows several links', () => {
    const clause = parse('Observation', 'patient.organization.name', 'x')
    assert.ok(clause.kind === 'chain' && clause.targets[0]?.clause.kind === 'chain')
    assert.equal(clause.targets[0].clause.targets[0]?.type, 'Organization')
    assert.equal(reason('Patient', 'link.link.link.name', 'x'), 'accepted')
  })

  it('refuses links that cannot be followed', () => {
    assert.equal(reason('Observation', 'code.name', 'x'), 'not-supported')
    assert.equal(reason('Observation', 'subject:Practitioner.name', 'x'), 'not-supported')
    assert.equal(reason('Observation', 'subject:identifier.name', 'x'), 'not-supported')
    assert.equal(reason('Observation', 'subject.nonsense', 'x'), 'parameter-unknown')
    assert.equal(reason('Observation', 'patient.nonsense', 'x'), 'parameter-unknown')
    assert.equal(reason('Observation', 'patient.birthdate', 'x'), 'invalid')
    assert.equal(reason('Observation', 'subject.birthdate', 'x'), 'invalid')
    for (const [name, unknown] of [
      ['patient.nonsense', 'nonsense of Patient'],
      ['subject.nonsense', 'subject.nonsense of Observation'],
    ] as const) {
      const clause = parse('Observation', name, 'x')
      assert(clause.kind === 'error')
      assert.equal(describeFailed(clause), `Unknown search parameter ${unknown}`)
    }
    assert.equal(reason('Patient', 'link.link.link.link.name', 'x'), 'not-supported')
  })

  it('is parsed quickly in every form', () => {
    const started = process.cpuUsage()
    parse('Provenance', 'target.target.target.target.target.target', '1')
    parse('Provenance', `target${'.target'.repeat(1000)}`, '1')
    parse('Patient', `_has:Provenance:target${':_has:Provenance:target'.repeat(1000)}:_id`, '1')
    assert.ok(process.cpuUsage(started).user < 5_000_000)
  })
})

describe('parseSearch of _has', () => {
  it('reads type, reference and parameter', () => {
    assert.deepEqual(parse('Patient', '_has:Observation:patient:code', '1234-5'), {
      kind: 'has',
      type: 'Observation',
      parameter: 'patient',
      clause: {
        kind: 'token',
        parameter: 'code',
        negated: false,
        values: [{ system: undefined, code: '1234-5' }],
      },
    })
  })

  it('accepts nested parameters', () => {
    const clause = parse('Patient', '_has:Observation:patient:_has:Provenance:target:agent', 'Practitioner/1')
    assert.ok(clause.kind === 'has' && clause.clause.kind === 'has')
    assert.equal(clause.clause.type, 'Provenance')
  })

  it('refuses parameters that do not refer to the type', () => {
    assert.equal(reason('Patient', '_has:Observation:patient', 'x'), 'not-supported')
    assert.equal(reason('Patient', '_has:Nonsense:patient:code', 'x'), 'not-supported')
    assert.equal(reason('Patient', '_has:Observation:code:code', 'x'), 'not-supported')
    assert.equal(reason('Practitioner', '_has:Observation:patient:code', 'x'), 'not-supported')
    assert.equal(reason('Patient', '_has:Observation:nonsense:code', 'x'), 'parameter-unknown')
    assert.equal(reason('Patient', '_has:Observation:patient:nonsense', 'x'), 'parameter-unknown')
  })
})
