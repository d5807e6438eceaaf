import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  describeUnsupportedOperation,
  findOperation,
  getOperationDefinition,
  listGatewayOperations,
  listOperations,
  operations,
  parsePassedOperation,
} from './operations.ts'

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
      ...{ name: '$meta', levels: ['system', 'type', 'instance'], types: 'any', needs },
    })
    assert.deepEqual(parsePassedOperation('Patient/$match:read'), {
      ...{ name: '$match', levels: ['type', 'instance'], types: ['Patient'] },
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

describe('describeUnsupportedOperation', () => {
  it('names the operation', () =>
    assert.equal(describeUnsupportedOperation('$x'), 'The operation $x is not supported here.'))
})
