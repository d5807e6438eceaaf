import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isFailure } from '../core/index.ts'
import {
  findOperation,
  getOperationDefinition,
  listGatewayOperations,
  listOperations,
  operations,
  parseLastN,
  parsePassedOperation,
  selectLastN,
} from './operations.ts'
import type { Resource } from './resource.ts'

const find = (rules: typeof operations, name: string, type?: string, id?: string) =>
  findOperation(rules, { name, ...(type !== undefined && { type }), ...(id !== undefined && { id }) })?.needs

const RECORD = { kind: 'all', permissions: ['r', 's'] }
const WHOLE_TYPE = { kind: 'whole-type' }

describe('operations', () => {
  it('include exactly those of the embedded server', () => {
    assert.deepEqual(find(operations, '$everything', 'Patient', '1'), RECORD)
    assert.deepEqual(find(operations, '$everything', 'Encounter', '1'), RECORD)
    assert.deepEqual(find(operations, '$lastn', 'Observation'), RECORD)
    assert.deepEqual(find(operations, '$validate', 'Condition'), {
      kind: 'any',
      permissions: ['c', 'r', 'u', 'd', 's'],
    })
    assert.deepEqual(find(operations, '$validate', 'Condition', '1'), { kind: 'all', permissions: ['r'] })
  })

  it('exist at the URLs of their levels and types only', () => {
    for (const [name, type, id] of [
      ['$everything'],
      ['$everything', 'Patient'],
      ['$everything', 'Condition', '1'],
      ['$lastn', 'Observation', '1'],
      ['$lastn', 'Condition'],
      ['$validate'],
      ['$expand', 'ValueSet'],
    ] as const)
      assert.equal(find(operations, name, type, id), undefined, `${type}/${id}/${name}`)
  })
})

describe('listGatewayOperations', () => {
  const rules = listGatewayOperations()
  const cases: readonly (readonly [string, string, needs: object, onType: boolean, onInstance: boolean])[] = [
    ['$everything', 'Patient', RECORD, false, true],
    ['$docref', 'DocumentReference', RECORD, true, false],
    ['$summary', 'Patient', RECORD, false, true],
    ['$document', 'Composition', RECORD, false, true],
    ['$expand', 'ValueSet', WHOLE_TYPE, true, true],
    ['$validate-code', 'CodeSystem', WHOLE_TYPE, true, true],
    ['$validate-code', 'ValueSet', WHOLE_TYPE, true, true],
    ['$lookup', 'CodeSystem', WHOLE_TYPE, true, false],
    ['$translate', 'ConceptMap', WHOLE_TYPE, true, true],
  ]
  for (const [name, type, needs, onType, onInstance] of cases)
    it(`has ${name} on ${type}`, () => {
      assert.deepEqual(find(rules, name, type), onType ? needs : undefined)
      assert.deepEqual(find(rules, name, type, '1'), onInstance ? needs : undefined)
      assert.equal(find(rules, name, 'Basic', '1'), undefined)
      assert.equal(find(rules, name), undefined)
    })
})

describe('parsePassedOperation', () => {
  it('reads an operation of a type or of the whole server, and whether it only reads', () => {
    const needs = { kind: 'all-data', readsOnly: false }
    assert.deepEqual(parsePassedOperation('$meta'), {
      name: '$meta',
      levels: ['system', 'type', 'instance'],
      types: 'any',
      needs,
    })
    assert.deepEqual(parsePassedOperation('Patient/$match:read'), {
      name: '$match',
      levels: ['type', 'instance'],
      types: ['Patient'],
      needs: { kind: 'all-data', readsOnly: true },
    })
  })

  it('reads nothing else', () => {
    for (const text of [
      '',
      'meta',
      '$',
      '$Meta',
      'patient/$match',
      'Nothing/$match',
      'Patient/1/$match',
      '$meta:write',
    ])
      assert.equal(parsePassedOperation(text), undefined, text)
  })
})

describe('listOperations', () => {
  it('lists the operations of a type by name, each once', () => {
    const meta = parsePassedOperation('$meta')
    assert(meta)
    const rules = listGatewayOperations([meta, { ...meta, name: '$export', levels: ['system'] }])
    assert.deepEqual(listOperations(rules, 'Patient'), ['everything', 'validate', 'summary', 'meta'])
    assert.deepEqual(listOperations(operations, 'Observation'), ['lastn', 'validate'])
  })
})

describe('getOperationDefinition', () => {
  it('is the definition of R4', () => {
    const base = 'http://hl7.org/fhir/OperationDefinition'
    assert.equal(getOperationDefinition('Patient', 'everything'), `${base}/Patient-everything`)
    assert.equal(getOperationDefinition('Patient', 'validate'), `${base}/Resource-validate`)
  })
})

const observation = (id: string, effectiveDateTime: string | undefined, ...codes: string[]): Resource => ({
  resourceType: 'Observation',
  id,
  code: { coding: codes.map(code => ({ system: 's', code })) },
  ...(effectiveDateTime !== undefined && { effectiveDateTime }),
})
const select = (observations: readonly Resource[], max = 1) =>
  selectLastN(observations, it => it, max, 'http://base').map(({ id }) => id)

describe('selectLastN', () => {
  it('selects the newest of each code, newest first, and those without a date last', () => {
    const all = [
      observation('a1', '2020', 'a'),
      observation('a2', '2022', 'a'),
      observation('a0', undefined, 'a'),
      observation('b1', '2021', 'b'),
    ]
    assert.deepEqual(select(all), ['a2', 'b1'])
    assert.deepEqual(select(all, 2), ['a2', 'a1', 'b1'])
    assert.deepEqual(select(all, 9), ['a2', 'a1', 'a0', 'b1'])
  })

  it('treats Observations that share a coding as the same code', () => {
    const all = [
      observation('1', '2022', 'a'),
      observation('2', '2021', 'a', 'b'),
      observation('3', '2020', 'b'),
    ]
    assert.deepEqual(select(all), ['1'])
  })

  it('compares texts without a coding', () => {
    const text = (id: string, at: string, code: unknown) => ({ ...observation(id, at), code }) as Resource
    const all = [
      text('1', '2020', { text: 'x' }),
      text('2', '2021', { text: 'x' }),
      text('3', '2022', { text: 'y' }),
    ]
    assert.deepEqual(select(all), ['3', '2'])
    assert.deepEqual(select([text('1', '2020', undefined), text('2', '2021', 5)]), ['2'])
  })
})

describe('parseLastN', () => {
  it('separates max from the search parameters', () => {
    const params = [
      ['patient', '1'],
      ['max', '3'],
      ['_format', 'json'],
      ['_id', 'x'],
    ] as const
    assert.deepEqual(parseLastN(params), {
      max: 3,
      criteria: [
        ['patient', '1'],
        ['_id', 'x'],
      ],
    })
    assert.deepEqual(parseLastN([]), { max: 1, criteria: [] })
  })

  for (const [name, value] of [
    ['max', '0'],
    ['max', '1001'],
    ['max', 'x'],
    ['_sort', 'date'],
    ['_include', 'Observation:subject'],
    ['_include:iterate', 'Observation:subject'],
    ['_summary', 'count'],
  ] as const)
    it(`refuses ${name}=${value}`, () => assert(isFailure(parseLastN([[name, value]]))))
})
